// SPDX-License-Identifier: BSL-1.0
// Memory of each process that all processes read, write and lock.
#pragma once

#include <weft/rma/combine.hpp>
#include <weft/rma/detail/window_memory.hpp>
#include <weft/rma/process_group.hpp>
#include <weft/rma/window_options.hpp>

#include <bit>
#include <chrono>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

namespace weft::inline WEFT_ABI::rma {

/// `size` elements of type T in each process of a group, zero at first. Constructor and destructor are
/// collective. Operations are complete when they return; those that were begun end with the window at the
/// latest. Single elements of 1, 2, 4 or 8 bytes are read and written whole; for others, and for what belongs
/// together, there are locks (rma/locks.hpp).
/// *Throws*: std::out_of_range if there is no such process or element; mpi::error; weft::error if the backend
/// cannot be had, processes make it in different ways, or at a lock of which this process holds another form;
/// std::length_error if it is too large. *Suspends*: never; who waits for a
/// lock gives the processor to other processes. *Thread safety*: elements: any thread, if MPI was started
/// with MPI_THREAD_MULTIPLE, as mpi::environment does. Locks belong to the process: one thread at a time.
/// `Group`: its processes, those of an MPI job (<weft/rma.hpp>) or a thread_group (<weft/rma/threads.hpp>).
template <class T, class Group = mpi::communicator>
class window {
  static_assert(std::is_trivially_copyable_v<T>, "weft: a window holds trivially copyable elements");
  static_assert(alignof(T) <= 64, "weft: elements of a window have an alignment of at most 64 bytes");

 public:
  /// Makes a window of `size` elements in each process.
  window(const Group& group, std::size_t size, const window_options& options = {})
      : size_(size), memory_(group, size, sizeof(T), options) {}

  /// Elements of each process.
  std::size_t size() const noexcept { return size_; }
  /// Its processes.
  const Group& group() const noexcept { return memory_.group(); }
  /// How memory is reached.
  rma::backend backend() const noexcept { return memory_.options().backend; }
  /// Whether a process may stay outside MPI while others use its memory and its locks. If not, what they do
  /// may wait until it calls MPI. Locks of the kind mpi are those of MPI also where the memory is shared or
  /// reached by messages. For backends and locks that MPI provides, this is what a probe has found; other
  /// threads of a process that call MPI all the time, as those of the backend messages do, may do it good,
  /// while they last.
  bool one_sided() const noexcept { return memory_.one_sided(); }
  /// The kind of its locks.
  lock_kind lock() const noexcept { return memory_.options().lock; }
  /// The elements of this process. Whoever uses them while others may write holds a lock.
  std::span<T> local() noexcept { return {reinterpret_cast<T*>(memory_.own()), size_}; }

  /// *Throws*: std::out_of_range if there are no such processes and elements.
  void check(process target, std::size_t index = 0, std::size_t count = 0) const {
    if (target < 0 || target >= group().size() || index > size_ || count > size_ - index) [[unlikely]]
      refuse_(target, index, count);
  }
  /// *Throws*: weft::error if T has no such operation.
  static void check(combine how)
    requires number<T>
  {
    if (!can_combine<T>(how)) throw error("weft: numbers with a point have no bits to combine");
  }
  /// The elements of a process, where they have an address here; null where they are reached through MPI.
  T* direct(process target) const {
    check(target);
    return at_(target);
  }

  /// An element.
  T get(process target, std::size_t index) const {
    check(target, index, 1);
    T value;
    if (T* const first = at_(target)) {
      if constexpr (single)
        value = std::atomic_ref<T>(first[index]).load(std::memory_order_relaxed);
      else
        std::memcpy(static_cast<void*>(&value), first + index, sizeof value);
    } else if constexpr (single) {
      value = element_(memory_.remote().load(target, place_(index), word));
    } else {
      get(target, index, std::span<T>(&value, 1));
    }
    return value;
  }
  /// Elements from `index` on.
  void get(process target, std::size_t index, std::span<T> to) const {
    start_get(target, index, to);
    finish(target);
  }
  /// Sets an element.
  void put(process target, std::size_t index, const T& value) {
    check(target, index, 1);
    if (T* const first = at_(target)) {
      if constexpr (single)
        std::atomic_ref<T>(first[index]).store(value, std::memory_order_relaxed);
      else
        std::memcpy(static_cast<void*>(first + index), &value, sizeof value);
    } else if constexpr (single) {
      memory_.remote().fetch(target, place_(index), word, combine::replace, bits_(value));
    } else {
      put(target, index, std::span<const T>(&value, 1));
    }
  }
  /// Sets elements from `index` on.
  void put(process target, std::size_t index, std::span<const T> from) {
    start_put(target, index, from);
    finish(target);
  }
  /// Combines elements from `index` on with others, each atomically. Operations of different kinds on one
  /// element at once are atomic where the MPI makes them so; those that the locks need, the probe has tried.
  /// *Throws*: weft::error if T has no such operation.
  void accumulate(process target, std::size_t index, std::span<const T> with, combine how)
    requires number<T>
  {
    start_accumulate(target, index, with, how);
    finish(target);
  }

  /// Begins to read elements: they are there after finish(target). Until then `to` is not touched.
  void start_get(process target, std::size_t index, std::span<T> to) const {
    check(target, index, to.size());
    if (to.empty()) return;
    if (const T* const first = at_(target))
      std::memcpy(static_cast<void*>(to.data()), first + index, to.size_bytes());
    else
      memory_.remote().start_get(target, place_(index), to.data(), to.size_bytes());
  }
  /// Begins to write elements: `from` is not changed until finish(target).
  void start_put(process target, std::size_t index, std::span<const T> from) {
    check(target, index, from.size());
    if (from.empty()) return;
    if (T* const first = at_(target))
      std::memcpy(static_cast<void*>(first + index), from.data(), from.size_bytes());
    else
      memory_.remote().start_put(target, place_(index), from.data(), from.size_bytes());
  }
  /// Begins to combine elements: as accumulate() and start_put().
  void start_accumulate(process target, std::size_t index, std::span<const T> with, combine how)
    requires number<T>
  {
    check(target, index, with.size());
    check(how);
    if (T* const first = at_(target))
      for (std::size_t i = 0; i < with.size(); ++i) combine_atomically(first[index + i], how, with[i]);
    else
      memory_.remote().start_accumulate(target, place_(index), with.data(), with.size(), detail::type_of<T>(),
                                        how);
  }
  /// Waits until what this thread has begun with a target is complete, here and there. *Requires*: a task has
  /// not waited since it began that, as it may have gone on with another thread.
  void finish(process target) const {
    check(target);
    if (at_(target) == nullptr) memory_.remote().finish(target);
  }

  /// Adds to an element, atomically. *Returns*: what it was; as the next three, for integers.
  T fetch_add(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return fetch_(target, index, value, combine::sum);
  }
  /// Sets bits of an element.
  T fetch_or(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return fetch_(target, index, value, combine::bit_or);
  }
  /// Replaces an element.
  T exchange(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return fetch_(target, index, value, combine::replace);
  }
  /// Replaces an element by `wanted` if it is `expected`.
  T compare_exchange(process target, std::size_t index, T expected, T wanted)
    requires std::is_integral_v<T>
  {
    check(target, index, 1);
    if (T* const first = at_(target)) {
      std::atomic_ref<T>(first[index]).compare_exchange_strong(expected, wanted, std::memory_order_seq_cst);
      return expected;
    }
    return element_(
        memory_.remote().compare_exchange(target, place_(index), word, bits_(expected), bits_(wanted)));
  }

  /// Locks a target exclusively. Classes in rma/locks.hpp lock, and give the lock back. `number`: which of
  /// the locks of the target, if there are several.
  void lock_exclusive(process target, unsigned number = 0) { memory_.locks(number).lock_exclusive(target); }
  /// Locks a target exclusively if nobody else has it. *Returns*: whether. *Throws*: also weft::error with
  /// locks of the kind mpi, which cannot be tried; as the other forms that try.
  bool try_lock_exclusive(process target, unsigned number = 0) {
    return memory_.locks(number).try_lock_exclusive(target);
  }
  /// Tries that for so long at most, with growing pauses. It joins no queue: who waits there is served first.
  bool try_lock_exclusive_for(process target, std::chrono::nanoseconds limit, unsigned number = 0) {
    return try_for_(limit, [&] { return try_lock_exclusive(target, number); });
  }
  /// Gives an exclusive lock back.
  void unlock_exclusive(process target, unsigned number = 0) {
    memory_.locks(number).unlock_exclusive(target);
  }
  /// Locks a target for reading.
  void lock_shared(process target, unsigned number = 0) { memory_.locks(number).lock_shared(target); }
  /// Locks a target for reading if no writer has it or waits for it. *Returns*: whether.
  bool try_lock_shared(process target, unsigned number = 0) {
    return memory_.locks(number).try_lock_shared(target);
  }
  /// Tries that for so long at most, with growing pauses.
  bool try_lock_shared_for(process target, std::chrono::nanoseconds limit, unsigned number = 0) {
    return try_for_(limit, [&] { return try_lock_shared(target, number); });
  }
  /// Gives a shared lock back.
  void unlock_shared(process target, unsigned number = 0) { memory_.locks(number).unlock_shared(target); }
  /// Locks all targets for reading. The kinds gbh and gbh_backoff enter first, and then wait for the writers
  /// that are there; the others wait until there is none.
  void lock_shared_all(unsigned number = 0) { memory_.locks(number).lock_shared_all(); }
  /// Locks all targets for reading if no writer has one or waits for one. *Returns*: whether.
  bool try_lock_shared_all(unsigned number = 0) { return memory_.locks(number).try_lock_shared_all(); }
  /// Tries that for so long at most, with growing pauses, giving way to writers.
  bool try_lock_shared_all_for(std::chrono::nanoseconds limit, unsigned number = 0) {
    return try_for_(limit, [&] { return try_lock_shared_all(number); });
  }
  /// Gives the lock on all targets back.
  void unlock_shared_all(unsigned number = 0) { memory_.locks(number).unlock_shared_all(); }

 private:
  static constexpr bool single = std::has_single_bit(sizeof(T)) && sizeof(T) <= 8;
  template <std::size_t Bytes>
  using unsigned_of =
      std::conditional_t<Bytes == 1, std::uint8_t,
                         std::conditional_t<Bytes == 2, std::uint16_t,
                                            std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr detail::number_type word = detail::type_of<unsigned_of<sizeof(T)>>();
  /// An element of 1, 2, 4 or 8 bytes as a word, and back.
  static std::uint64_t bits_(const T& value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T element_(std::uint64_t bits) noexcept {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
  }

  /// Apart, so that what checks is a few instructions.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_(process target, std::size_t index,
                                                      std::size_t count) const {
    throw std::out_of_range("weft: elements " + std::to_string(index) + " to " +
                            std::to_string(index + count) + " of process " + std::to_string(target) +
                            ", in a window of " + std::to_string(size_) + " elements in each of " +
                            std::to_string(group().size()) + " processes");
  }
  T* at_(process target) const noexcept { return reinterpret_cast<T*>(memory_.address(target)); }
  std::size_t place_(std::size_t index) const noexcept { return memory_.offset() + index * sizeof(T); }
  T fetch_(process target, std::size_t index, T value, combine how) {
    check(target, index, 1);
    if (T* const first = at_(target)) return combine_atomically(first[index], how, value);
    return element_(memory_.remote().fetch(target, place_(index), word, how, bits_(value)));
  }
  template <class F>
  static bool try_for_(std::chrono::nanoseconds limit, F&& attempt) {
    using clock = std::chrono::steady_clock;
    const auto now = clock::now();
    const auto end = limit > clock::time_point::max() - now ? clock::time_point::max() : now + limit;
    for (detail::back_off after_failure; !attempt(); after_failure.wait(end))
      if (clock::now() >= end) return false;
    return true;
  }

  std::size_t size_;
  typename detail::memory_of<Group>::type memory_;
};

}  // namespace weft::inline WEFT_ABI::rma
