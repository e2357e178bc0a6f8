// SPDX-License-Identifier: BSL-1.0
// What a running body has left of a range: the body takes at the front, thieves take at the back.
#pragma once

#include <weft/base/lock.hpp>

#include <concepts>
#include <mutex>
#include <optional>
#include <type_traits>

namespace weft::inline WEFT_ABI {

/// The integers from `first` on that are less than `last`, given out in parts: at the front to the body that
/// owns the interval, at the back to thieves, whom its weft::steal_function lets in.
///
/// *Thread safety*: one thread takes at the front, the owner; any number take at the back. *Requires*:
/// thieves take in a steal function, or elsewhere while a weft::runtime exists.
///
/// *Example*: `weft::interval<long> left(0, n); while (const auto part = left.take_front(256)) ...`
///
/// *Source*: KAAPI's adaptive loops; the protocol is the asymmetric form of Dekker's by which thieves enter
/// strands (sched/README.md).
template <std::integral I>
class interval {
 public:
  /// A part: not empty.
  struct part {
    I first;  ///< the first one
    I last;   ///< behind the last one
  };
  /// How many there are of them.
  using size_type = std::make_unsigned_t<I>;

  /// `last` may be less than `first`: then there is nothing.
  interval(I first, I last) noexcept : front_(first), back_(first < last ? last : first) {}
  interval(const interval&) = delete;
  interval& operator=(const interval&) = delete;

  /// Takes at most `most` integers at the front, at least one; nothing where nothing is left or `most` is
  /// zero. *Requires*: called by the owner. *Cost*: a store and two loads, where no thief comes close; else a
  /// lock.
  std::optional<part> take_front(size_type most) noexcept {
    const I first = front_.load(base::memory_order_relaxed);  // the owner's own store, or under the lock
    const I last = back_.load(base::memory_order_relaxed);    // a first look
    if (first < last) {
      const I end = advance(first, at_most(most, distance(first, last)));
      base::owner_store(front_, end);
      if (end <= base::owner_load(back_)) [[likely]]
        return end != first ? std::optional(part{first, end}) : std::nullopt;
    }
    return take_front_locked(first, most);
  }

  /// Takes the second half of what is left. *Returns*: nothing if that is less than `least`, or empty.
  /// *Thread safety*: any thread. *Cost*: a lock, and the heavy fence of a theft: microseconds.
  std::optional<part> take_back_half(size_type least) noexcept {
    const std::lock_guard hold(mutex_);
    const I last = back_.load(base::memory_order_relaxed);  // changed under the lock only
    // Acquire pairs with the owner's store.
    const I first = front_.load(base::memory_order_acquire);
    const size_type half = first < last ? distance(first, last) / 2 : 0;
    if (half == 0 || half < least) return std::nullopt;
    const I middle = advance(first, distance(first, last) - half);
    back_.store(middle, base::memory_order_relaxed);
    // Either the owner sees the new end, or this sees what the owner has taken meanwhile.
    if (base::heavy_fence() != base::fenced::by_nothing) {
      if (front_.load(base::memory_order_acquire) <= middle) return part{middle, last};
    }
    back_.store(last, base::memory_order_release);  // pairs with the owner's load
    return std::nullopt;
  }

  /// How many are left, at the moment of the call. *Thread safety*: any thread.
  size_type size() const noexcept {
    // Relaxed: both may be older than the call, so the difference is an estimate.
    const I first = front_.load(base::memory_order_relaxed), last = back_.load(base::memory_order_relaxed);
    return first < last ? distance(first, last) : 0;
  }

 private:
  static size_type distance(I first, I last) noexcept {
    return static_cast<size_type>(static_cast<size_type>(last) - static_cast<size_type>(first));
  }
  static size_type at_most(size_type most, size_type n) noexcept { return most < n ? most : n; }
  static I advance(I first, size_type by) noexcept {
    return static_cast<I>(static_cast<size_type>(static_cast<size_type>(first) + by));
  }
  std::optional<part> take_front_locked(I first, size_type most) noexcept {
    const std::lock_guard hold(mutex_);
    const I last = back_.load(base::memory_order_relaxed);  // changed under the lock only
    const I end = first < last ? advance(first, at_most(most, distance(first, last))) : first;
    front_.store(end, base::memory_order_relaxed);  // thieves read it under the lock
    return end != first ? std::optional(part{first, end}) : std::nullopt;
  }

  base::atomic<I> front_;
  alignas(64) base::atomic<I> back_;
  base::mutex mutex_;
};

}  // namespace weft::inline WEFT_ABI
