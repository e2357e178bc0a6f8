// SPDX-License-Identifier: BSL-1.0
// Buckets of a hash table in the memory of other processes, written by one process at a time.
#pragma once

#include <weft/base/error.hpp>
#include <weft/rma/combine.hpp>
#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/lock_kind.hpp>
#include <weft/rma/words.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::rma::detail {

/// The state of a bucket: 0 if it was never used; else a count that grows with each change, and two bits.
namespace bucket_state {
inline constexpr std::uint64_t busy = 1;  ///< a process writes it
inline constexpr std::uint64_t live =
    2;  ///< it holds a value; otherwise that was erased, the key is still there
inline constexpr std::uint64_t one = 4;  ///< the next count
}  // namespace bucket_state

/// All bits of two numbers in one.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using wide = unsigned __int128;
  const wide product = static_cast<wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
inline constexpr std::uint64_t odd = 0x9e3779b97f4a7c15, other_odd = 0xd6e8feb86659fd93;

/// What a bucket holds, in words: the state, the key, the value, and a checksum of all that for memory that
/// is reached through MPI, where a read may meet a write in any order.
template <class Key, class Value>
struct bucket_image {
  static constexpr std::size_t key_words = (sizeof(Key) + 7) / 8, value_words = (sizeof(Value) + 7) / 8;
  static constexpr std::size_t words = 1 + key_words + value_words + 1;

  std::array<std::uint64_t, words> of;  // as it comes: what was not read is not used

  std::uint64_t state() const noexcept { return of[0]; }
  bool is(const Key& k) const noexcept {
    Key held;
    std::memcpy(static_cast<void*>(&held), &of[1], sizeof held);
    return held == k;
  }
  Value value() const noexcept {
    Value v;
    std::memcpy(static_cast<void*>(&v), &of[1 + key_words], sizeof v);
    return v;
  }
  void copy_value(std::optional<Value>& to) const noexcept {
    std::memcpy(static_cast<void*>(&to.emplace()), &of[1 + key_words], sizeof(Value));
  }
  Key key() const noexcept {
    Key k;
    std::memcpy(static_cast<void*>(&k), &of[1], sizeof k);
    return k;
  }
  void set(const Key& k, const Value& v) noexcept {
    std::memcpy(&of[1], &k, sizeof k);
    std::memcpy(&of[1 + key_words], &v, sizeof v);
  }
  std::uint64_t checksum() const noexcept {
    std::uint64_t sum = odd;
    for (std::size_t i = 0; i + 1 < words; ++i) sum = std::rotl(sum, 5) + mix(of[i] ^ other_odd, odd + 2 * i);
    return sum;
  }
};

/// The buckets of all processes. Without locks, a reader reads the state, the rest, and the state again; a
/// writer makes the bucket busy, writes the rest, and then the new state. With locks, the buckets of a
/// process are divided into ranges, each with a lock that whoever reads or writes there holds; nothing else
/// is needed. `Memory`: the words of all processes, as window<std::uint64_t>; tests have threads in the place
/// of processes.
template <class Key, class Value, class Memory>
class buckets {
 public:
  using image = bucket_image<Key, Value>;
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value> &&
                    std::is_default_constructible_v<Key> && std::is_default_constructible_v<Value>,
                "weft: keys and values of a hash table are trivially copyable");

  /// `lock`: the kind of locks; without one, buckets are read without locks. `memory(words)`: makes the
  /// memory with so many words in each process. *Throws*: weft::error if a process cannot have that many.
  template <class F>
  buckets(std::size_t each, std::optional<lock_kind> lock, unsigned ranges, F&& memory)
      : each_(each), range_((each + ranges - 1) / ranges), lock_(lock), memory_(memory(words_of_(each))) {}

  std::size_t each() const noexcept { return each_; }
  const Memory& memory() const noexcept { return memory_; }
  std::uint64_t retries() const noexcept { return retries_; }
  bool has_locks() const noexcept { return lock_.has_value(); }

  /// The buckets that a key may come to whose first one is `bucket`: from the beginning of a range on, so
  /// many.
  std::pair<std::size_t, std::size_t> range_of(std::size_t bucket) const noexcept {
    if (!has_locks()) return {0, each_};
    const std::size_t begin = bucket / range_ * range_;
    return {begin, std::min(range_, each_ - begin)};
  }
  /// Holds the lock of the range of a bucket, if there are locks.
  class guard {
   public:
    guard(const buckets& of, process p, std::size_t bucket, bool writes)
        : memory_(of.has_locks() ? &of.memory_ : nullptr),
          target_(p),
          number_(static_cast<unsigned>(bucket / of.range_)),
          exclusive_(writes || !has_shared(of.lock_.value_or(lock_kind::mpi))) {
      if (memory_ == nullptr) return;
      exclusive_ ? memory_->lock_exclusive(p, number_) : memory_->lock_shared(p, number_);
    }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() {
      if (memory_ == nullptr) return;
      exclusive_ ? memory_->unlock_exclusive(target_, number_) : memory_->unlock_shared(target_, number_);
    }

   private:
    Memory* memory_;
    process target_;
    unsigned number_;
    bool exclusive_;
  };

  /// A consistent image of a bucket; only the state and the key if it is not `wanted`.
  void read(process p, std::size_t bucket, const Key* wanted, image& i) const {
    if (has_locks()) return memory_.get(p, bucket * image::words, std::span<std::uint64_t>(i.of));
    for (patience between; !try_read_(p, bucket, wanted, i); between.wait()) ++retries_;
  }
  /// Makes a bucket busy that has this state. *Returns*: whether it had.
  bool claim(process p, std::size_t bucket, std::uint64_t state) {
    return has_locks() ||
           memory_.compare_exchange(p, bucket * image::words, state, state | bucket_state::busy) == state;
  }
  /// Writes a bucket that is busy, and ends that. The image has the new state.
  void publish(process p, std::size_t bucket, image& i) {
    const std::size_t at = bucket * image::words;
    std::uint64_t* const first = memory_.direct(p);
    if (first != nullptr && !has_locks()) {
      std::atomic_thread_fence(std::memory_order_release);  // nobody sees the rest before the state was busy
      for (std::size_t w = 1; w + 1 < image::words; ++w)
        word_(first + at + w).store(i.of[w], std::memory_order_relaxed);
      word_(first + at).store(i.of[0], std::memory_order_release);
      return;
    }
    start_publish(p, bucket, i);
    memory_.finish(p);
    start_state(p, bucket, i);
    memory_.finish(p);
  }
  /// Ends that a bucket is busy; nothing else has changed.
  void release(process p, std::size_t bucket, std::uint64_t state) {
    if (has_locks()) return;
    if (std::uint64_t* const first = memory_.direct(p))
      word_(first + bucket * image::words).store(state, std::memory_order_release);
    else
      memory_.put(p, bucket * image::words, state);
  }

  /// Whether the buckets of a process have an address here.
  bool has_address(process p) const noexcept { return memory_.direct(p) != nullptr; }
  /// Begins to bring all of a bucket into the cache; only where it has an address.
  void prefetch(process p, std::size_t bucket) const noexcept {
    prefetch_(memory_.direct(p) + bucket * image::words, 0);
  }
  /// Many buckets of a process at once; each step is complete after finish(). First their images,
  void start_read(process p, std::size_t bucket, image& i) const {
    memory_.start_get(p, bucket * image::words, std::span<std::uint64_t>(i.of));
  }
  /// of which those are consistent;
  bool is_consistent(const image& i) const noexcept {
    return has_locks() || i.of[0] == 0 ||
           ((i.of[0] & bucket_state::busy) == 0 && i.of.back() == i.checksum());
  }
  /// then what buckets hold that are claimed,
  void start_publish(process p, std::size_t bucket, image& i) {
    i.of.back() = i.checksum();
    const auto words = std::span<const std::uint64_t>(i.of);
    if (has_locks())
      memory_.start_put(p, bucket * image::words, words);
    else
      memory_.start_put(p, bucket * image::words + 1, words.subspan(1));
  }
  /// and their states.
  void start_state(process p, std::size_t bucket, const image& i) {
    if (!has_locks())
      memory_.start_accumulate(p, bucket * image::words, std::span<const std::uint64_t>(i.of).first(1),
                               combine::replace);
  }
  void finish(process p) const { memory_.finish(p); }

 private:
  static std::size_t words_of_(std::size_t each) {
    if (each > PTRDIFF_MAX / sizeof(image))
      throw error("weft: a hash table with " + std::to_string(each) + " buckets of " +
                  std::to_string(sizeof(image)) + " bytes in each process is larger than any memory");
    return each * image::words;
  }
  static constexpr std::size_t line = 64 / sizeof(std::uint64_t);
  /// From a word of a bucket on.
  static void prefetch_(const std::uint64_t* bucket, std::size_t word) noexcept {
    for (; word < image::words; word += line) __builtin_prefetch(bucket + word);
  }
  static std::atomic_ref<std::uint64_t> word_(std::uint64_t* at) noexcept {
    return std::atomic_ref<std::uint64_t>(*at);
  }

  bool try_read_(process p, std::size_t bucket, const Key* wanted, image& i) const {
    const std::size_t at = bucket * image::words;
    std::uint64_t* const first = memory_.direct(p);
    if (first == nullptr) {
      memory_.get(p, at, std::span<std::uint64_t>(i.of));
      return is_consistent(i);
    }
    prefetch_(first + at, line);  // all of a large bucket, while its beginning comes
    i.of[0] = word_(first + at).load(std::memory_order_acquire);
    if (i.of[0] == 0) return true;
    if (i.of[0] & bucket_state::busy) return false;
    const auto load = [&](std::size_t begin, std::size_t end) {
      for (std::size_t w = begin; w < end; ++w)
        i.of[w] = word_(first + at + w).load(std::memory_order_relaxed);
    };
    load(1, 1 + image::key_words);
    if (wanted == nullptr || i.is(*wanted)) load(1 + image::key_words, image::words - 1);
    std::atomic_thread_fence(std::memory_order_acquire);  // the rest is read before the state is read again
    return word_(first + at).load(std::memory_order_relaxed) == i.of[0];
  }

  std::size_t each_, range_;
  std::optional<lock_kind> lock_;
  mutable Memory memory_;
  mutable std::uint64_t retries_ = 0;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
