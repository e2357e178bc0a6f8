// SPDX-License-Identifier: BSL-1.0
// Memory of each process that all processes read, write and lock.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/probe.hpp>
#include <weft/rma/detail/target_locks.hpp>
#include <weft/rma/lock_kind.hpp>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::rma {

/// How processes reach the memory of each other.
enum class backend {
  automatic,  ///< shared if all processes run on one node, else mpi
  shared,     ///< memory that all processes have mapped, and the atomic instructions of the processor
  mpi         ///< the one-sided operations of MPI
};

/// The name of a backend.
constexpr const char* name(backend b) noexcept {
  constexpr const char* names[] = {"automatic", "shared", "mpi"};
  return names[static_cast<int>(b)];
}

/// What a window is like; the same in all processes.
struct window_options {
  lock_kind lock = lock_kind::mcs_writer_preference;  ///< of its locks
  rma::backend backend = backend::automatic;          ///< how its memory is reached
};

/// `size` elements of type T in each process of a group, zero at first. Constructor and destructor are
/// collective. Operations are complete when they return. Single elements of at most 8 bytes are read and
/// written whole; for others, and for what belongs together, there are locks (rma/locks.hpp).
/// *Throws*: std::out_of_range if there is no such process or element; mpi::error; weft::error if the backend
/// cannot be had, or at a lock of which this process holds another form. *Suspends*: never; who waits for a
/// lock gives the processor to other processes. *Thread safety*: one thread of each process at a time.
template <class T>
class window {
  static_assert(std::is_trivially_copyable_v<T>, "weft: a window holds trivially copyable elements");

 public:
  /// Makes a window of `size` elements in each process.
  window(const mpi::communicator& group, std::size_t size, const window_options& options = {})
      : group_(group.handle()), size_(size), options_(options) {
    if (options_.backend == backend::automatic || options_.backend == backend::shared) {
      mpi::communicator node = group_.node();
      const bool one_node = group_.min(node.size()) == group_.size();
      if (!one_node && options_.backend == backend::shared)
        throw error("weft: a window in shared memory needs all processes on one node");
      options_.backend = one_node ? backend::shared : backend::mpi;
    }
    bytes_for_words_ =
        ((detail::target_locks::words(options_.lock, group_.size()) + 1) * sizeof(std::uint64_t) + line - 1) /
        line * line;
    // Whole lines: with other sizes MPICH 4.0 reaches another place than the target itself.
    allocate_(static_cast<MPI_Aint>(bytes_for_words_ + (size_ * sizeof(T) + line - 1) / line * line + line));
    group_.barrier();
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  /// Ends the job with a message if this process holds a lock, or leaves the scope of the window by an
  /// exception: the others would wait for ever.
  ~window() {
    const char* const why = std::uncaught_exceptions() > exceptions_
                                ? "leaves the scope of a window by an exception"
                            : locks_->held_here() != 0 ? "destroys a window of which it holds locks"
                                                       : nullptr;
    if (why != nullptr) {
      std::fprintf(stderr, "weft: process %d %s\n", group_.rank(), why);
      MPI_Abort(group_.handle(), 1);
    }
    MPI_Barrier(group_.handle());
    locks_.reset();
    if (options_.backend == backend::mpi) MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  /// Elements of each process.
  std::size_t size() const noexcept { return size_; }
  /// Its processes.
  const mpi::communicator& group() const noexcept { return group_; }
  /// How memory is reached.
  rma::backend backend() const noexcept { return options_.backend; }
  /// Whether a process may stay outside MPI while others use its memory. If not, what they do may wait until
  /// it calls MPI.
  bool one_sided() const noexcept { return probed_.one_sided; }
  /// The kind of its locks.
  lock_kind lock() const noexcept { return options_.lock; }
  /// The elements of this process. Whoever uses them while others may write holds a lock.
  std::span<T> local() noexcept { return {reinterpret_cast<T*>(own_), size_}; }

  /// The elements of a process, where they have an address here; null where they are reached through MPI.
  T* direct(process target) const noexcept { return data_.empty() ? nullptr : element_(target, 0); }

  /// An element.
  T get(process target, std::size_t index) const {
    check_(target, index, 1);
    T value;
    if (options_.backend == backend::shared) {
      T* const at = element_(target, index);
      if constexpr (single)
        value = std::atomic_ref<T>(*at).load(std::memory_order_relaxed);
      else
        std::memcpy(&value, at, sizeof value);
    } else if constexpr (single) {
      using word = unsigned_of<sizeof(T)>;
      const word nothing = 0;
      word was = 0;
      fetch_and_op_(&nothing, &was, mpi::datatype<word>(), target, index, MPI_NO_OP);
      value = std::bit_cast<T>(was);
    } else {
      get(target, index, std::span<T>(&value, 1));
    }
    return value;
  }
  /// Elements from `index` on.
  void get(process target, std::size_t index, std::span<T> to) const {
    check_(target, index, to.size());
    if (options_.backend == backend::shared) {
      std::memcpy(to.data(), element_(target, index), to.size_bytes());
      return;
    }
    const int bytes = static_cast<int>(to.size_bytes());
    mpi::detail::check(MPI_Get(to.data(), bytes, MPI_BYTE, target, place_(index), bytes, MPI_BYTE, window_),
                       "MPI_Get");
    flush_(target);
  }
  /// Sets an element.
  void put(process target, std::size_t index, const T& value) {
    check_(target, index, 1);
    if (options_.backend == backend::shared) {
      T* const at = element_(target, index);
      if constexpr (single)
        std::atomic_ref<T>(*at).store(value, std::memory_order_relaxed);
      else
        std::memcpy(at, &value, sizeof value);
    } else if constexpr (single) {
      using word = unsigned_of<sizeof(T)>;
      const word wanted = std::bit_cast<word>(value);
      word was = 0;
      fetch_and_op_(&wanted, &was, mpi::datatype<word>(), target, index, MPI_REPLACE);
    } else {
      put(target, index, std::span<const T>(&value, 1));
    }
  }
  /// Sets elements from `index` on.
  void put(process target, std::size_t index, std::span<const T> from) {
    check_(target, index, from.size());
    if (options_.backend == backend::shared) {
      std::memcpy(element_(target, index), from.data(), from.size_bytes());
      return;
    }
    const int bytes = static_cast<int>(from.size_bytes());
    mpi::detail::check(MPI_Put(from.data(), bytes, MPI_BYTE, target, place_(index), bytes, MPI_BYTE, window_),
                       "MPI_Put");
    flush_(target);
  }

  /// Adds to an element, atomically. *Returns*: what it was; as the next four, for integers.
  T fetch_add(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return modify_(target, index, value, MPI_SUM, [](auto at, T v) { return at.fetch_add(v); });
  }
  /// Sets bits of an element.
  T fetch_or(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return modify_(target, index, value, MPI_BOR, [](auto at, T v) { return at.fetch_or(v); });
  }
  /// Replaces an element.
  T exchange(process target, std::size_t index, T value)
    requires std::is_integral_v<T>
  {
    return modify_(target, index, value, MPI_REPLACE, [](auto at, T v) { return at.exchange(v); });
  }
  /// Replaces an element by `wanted` if it is `expected`.
  T compare_exchange(process target, std::size_t index, T expected, T wanted)
    requires std::is_integral_v<T>
  {
    check_(target, index, 1);
    if (options_.backend == backend::shared) {
      std::atomic_ref<T>(*element_(target, index)).compare_exchange_strong(expected, wanted);
      return expected;
    }
    T was{};
    mpi::detail::check(
        MPI_Compare_and_swap(&wanted, &expected, &was, mpi::datatype<T>(), target, place_(index), window_),
        "MPI_Compare_and_swap");
    flush_(target);
    return was;
  }

  /// Locks a target exclusively. Classes in rma/locks.hpp lock, and give the lock back.
  void lock_exclusive(process target) { locks_->lock_exclusive(target); }
  /// Gives an exclusive lock back.
  void unlock_exclusive(process target) { locks_->unlock_exclusive(target); }
  /// Locks a target for reading.
  void lock_shared(process target) { locks_->lock_shared(target); }
  /// Gives a shared lock back.
  void unlock_shared(process target) { locks_->unlock_shared(target); }
  /// Locks all targets for reading.
  void lock_shared_all() { locks_->lock_shared_all(); }
  /// Gives the lock on all targets back.
  void unlock_shared_all() { locks_->unlock_shared_all(); }

 private:
  static constexpr std::size_t line = 64;
  static constexpr bool single = std::has_single_bit(sizeof(T)) && sizeof(T) <= 8;
  template <std::size_t Bytes>
  using unsigned_of =
      std::conditional_t<Bytes == 1, std::uint8_t,
                         std::conditional_t<Bytes == 2, std::uint16_t,
                                            std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

  void allocate_(MPI_Aint bytes) {
    void* base = nullptr;
    const bool shared = options_.backend == backend::shared;
    if (shared)
      mpi::detail::check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, group_.handle(), &base, &window_),
                         "MPI_Win_allocate_shared");
    else
      mpi::detail::check(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, group_.handle(), &base, &window_),
                         "MPI_Win_allocate");
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    if (shared) {
      std::vector<std::uint64_t*> first;
      for (process p = 0; p < group_.size(); ++p) {
        MPI_Aint size = 0;
        int unit = 0;
        void* at = nullptr;
        mpi::detail::check(MPI_Win_shared_query(window_, p, &size, &unit, &at), "MPI_Win_shared_query");
        auto* const begin = static_cast<std::byte*>(at) + offset_(at);
        first.push_back(reinterpret_cast<std::uint64_t*>(begin));
        data_.push_back(begin + bytes_for_words_);
      }
      own_ = data_[static_cast<std::size_t>(group_.rank())];
      locks_.emplace(group_, options_.lock, detail::shared_words(std::move(first), group_.rank()),
                     std::nullopt);
      std::memset(own_ - bytes_for_words_, 0, bytes_for_words_ + size_ * sizeof(T));
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::memset(base, 0, static_cast<std::size_t>(bytes));
      own_ = static_cast<std::byte*>(base) + bytes_for_words_;
      mpi::detail::check(MPI_Win_lock_all(0, window_), "MPI_Win_lock_all");
      const detail::mpi_words words(window_, group_.rank());
      locks_.emplace(group_, options_.lock, std::nullopt, words);
      group_.barrier();
      probed_ = detail::probe(
          words, static_cast<std::uint32_t>(detail::target_locks::words(options_.lock, group_.size())),
          group_);
      if (probed_.wrong != nullptr)
        throw error(std::string("weft: one-sided operations of this MPI are not atomic: ") + probed_.wrong);
    }
    if (group_.rank() == 0 && std::getenv("WEFT_MPI_VERBOSE") != nullptr)
      std::fprintf(stderr, "weft: window in %d processes: backend %s, locks %s, targets %s\n", group_.size(),
                   name(options_.backend), name(options_.lock),
                   probed_.one_sided ? "may stay outside MPI" : "must call MPI now and then");
  }
  /// Bytes from an address to the next multiple of a cache line; the same in all processes, since pages are
  /// aligned.
  static std::size_t offset_(const void* at) noexcept {
    return (line - reinterpret_cast<std::uintptr_t>(at) % line) % line;
  }

  void check_(process target, std::size_t index, std::size_t count) const {
    if (target < 0 || target >= group_.size() || index > size_ || count > size_ - index)
      throw std::out_of_range("weft: elements " + std::to_string(index) + " to " +
                              std::to_string(index + count) + " of process " + std::to_string(target) +
                              ", in a window of " + std::to_string(size_) + " elements in each of " +
                              std::to_string(group_.size()) + " processes");
  }
  T* element_(process target, std::size_t index) const noexcept {
    return reinterpret_cast<T*>(data_[static_cast<std::size_t>(target)]) + index;
  }
  MPI_Aint place_(std::size_t index) const noexcept {
    return static_cast<MPI_Aint>(bytes_for_words_ + index * sizeof(T));
  }
  void flush_(process target) const { mpi::detail::check(MPI_Win_flush(target, window_), "MPI_Win_flush"); }
  void fetch_and_op_(const void* value, void* was, MPI_Datatype type, process target, std::size_t index,
                     MPI_Op op) const {
    mpi::detail::check(MPI_Fetch_and_op(value, was, type, target, place_(index), op, window_),
                       "MPI_Fetch_and_op");
    flush_(target);
  }
  template <class F>
  T modify_(process target, std::size_t index, T value, MPI_Op op, F shared) {
    check_(target, index, 1);
    if (options_.backend == backend::shared)
      return shared(std::atomic_ref<T>(*element_(target, index)), value);
    T was{};
    fetch_and_op_(&value, &was, mpi::datatype<T>(), target, index, op);
    return was;
  }

  mpi::communicator group_;
  std::size_t size_, bytes_for_words_ = 0;
  window_options options_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* own_ = nullptr;
  std::vector<std::byte*> data_;  // of each process; backend shared
  std::optional<detail::target_locks> locks_;
  int exceptions_ = std::uncaught_exceptions();
  detail::probe_result probed_;
};

}  // namespace weft::inline WEFT_ABI::rma
