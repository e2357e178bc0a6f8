// SPDX-License-Identifier: BSL-1.0
// Buckets of a hash table in the memory of other processes: read without locks, written by one process at a
// time.
#pragma once

#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/window.hpp>

#include <array>
#include <atomic>
#include <cstring>

namespace weft::inline WEFT_ABI::rma::detail {

/// The state of a bucket: 0 if it was never used; else a count that grows with each change, and two bits.
namespace bucket_state {
inline constexpr std::uint64_t busy = 1;  ///< a process writes it
inline constexpr std::uint64_t live =
    2;  ///< it holds a value; otherwise that was erased, the key is still there
inline constexpr std::uint64_t one = 4;  ///< the next count
}  // namespace bucket_state

/// Spreads the bits of a number.
constexpr std::uint64_t mix(std::uint64_t h) noexcept {
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93;
  return h ^ h >> 32;
}

/// What a bucket holds, in words: the state, the key, the value, and a checksum of all that for memory that
/// is reached through MPI, where a read may meet a write in any order.
template <class Key, class Value>
struct bucket_image {
  static constexpr std::size_t key_words = (sizeof(Key) + 7) / 8, value_words = (sizeof(Value) + 7) / 8;
  static constexpr std::size_t words = 1 + key_words + value_words + 1;

  std::array<std::uint64_t, words> of{};

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
    std::uint64_t sum = 0x9e3779b97f4a7c15;
    for (std::size_t i = 0; i + 1 < words; ++i) sum = mix(sum + of[i]);
    return sum;
  }
};

/// The buckets of all processes. A reader reads the state, the rest, and the state again; a writer makes the
/// bucket busy, writes the rest, and then the new state.
template <class Key, class Value>
class buckets {
 public:
  using image = bucket_image<Key, Value>;
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value> &&
                    std::is_default_constructible_v<Key> && std::is_default_constructible_v<Value>,
                "weft: keys and values of a hash table are trivially copyable");

  buckets(const mpi::communicator& group, std::size_t each, rma::backend b)
      : each_(each), window_(group, each * image::words, {.lock = lock_kind::d_mcs, .backend = b}) {}

  std::size_t each() const noexcept { return each_; }
  const mpi::communicator& group() const noexcept { return window_.group(); }
  rma::backend backend() const noexcept { return window_.backend(); }
  std::uint64_t retries() const noexcept { return retries_; }

  /// A consistent image of a bucket; only the state and the key if it is not `wanted`.
  image read(process p, std::size_t bucket, const Key* wanted) const {
    image i;
    for (patience between;; between.wait(), ++retries_)
      if (try_read_(p, bucket, wanted, i)) return i;
  }
  /// Makes a bucket busy that has this state. *Returns*: whether it had.
  bool claim(process p, std::size_t bucket, std::uint64_t state) {
    return window_.compare_exchange(p, bucket * image::words, state, state | bucket_state::busy) == state;
  }
  /// Writes a bucket that is busy, and ends that. The image has the new state.
  void publish(process p, std::size_t bucket, image& i) {
    const std::size_t at = bucket * image::words;
    if (std::uint64_t* const first = window_.direct(p)) {
      std::atomic_thread_fence(std::memory_order_release);  // nobody sees the rest before the state was busy
      for (std::size_t w = 1; w + 1 < image::words; ++w)
        word_(first + at + w).store(i.of[w], std::memory_order_relaxed);
      word_(first + at).store(i.of[0], std::memory_order_release);
      return;
    }
    i.of.back() = i.checksum();
    window_.put(p, at + 1, std::span<const std::uint64_t>(i.of).subspan(1));
    window_.put(p, at, i.of[0]);
  }
  /// Ends that a bucket is busy; nothing else has changed.
  void release(process p, std::size_t bucket, std::uint64_t state) {
    if (std::uint64_t* const first = window_.direct(p))
      word_(first + bucket * image::words).store(state, std::memory_order_release);
    else
      window_.put(p, bucket * image::words, state);
  }

 private:
  static std::atomic_ref<std::uint64_t> word_(std::uint64_t* at) noexcept {
    return std::atomic_ref<std::uint64_t>(*at);
  }

  bool try_read_(process p, std::size_t bucket, const Key* wanted, image& i) const {
    const std::size_t at = bucket * image::words;
    std::uint64_t* const first = window_.direct(p);
    if (first == nullptr) {
      window_.get(p, at, std::span<std::uint64_t>(i.of));
      return i.of[0] == 0 || ((i.of[0] & bucket_state::busy) == 0 && i.of.back() == i.checksum());
    }
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

  std::size_t each_;
  mutable window<std::uint64_t> window_;
  mutable std::uint64_t retries_ = 0;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
