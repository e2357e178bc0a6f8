// SPDX-License-Identifier: BSL-1.0
// How long thieves leave frames of tiny tasks to their owner.
#pragma once

#include <weft/base/atomic.hpp>

#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

struct frame;

/// A time until which thieves keep away.
/// *Thread safety*: any; all of it is hints, hence relaxed throughout.
class deadline {
 public:
  using clock = base::clock;

  void set(clock::time_point t) noexcept {
    const std::int64_t n = t.time_since_epoch().count();
    if (since_epoch_.load(base::memory_order_relaxed) != n) since_epoch_.store(n, base::memory_order_relaxed);
  }
  void clear() noexcept { set({}); }
  /// Whether it was set, and not cleared since.
  bool any() const noexcept { return since_epoch_.load(base::memory_order_relaxed) != 0; }
  clock::time_point get() const noexcept {
    return clock::time_point(clock::duration(since_epoch_.load(base::memory_order_relaxed)));
  }
  bool lies_ahead() const noexcept { return any() && clock::now() < get(); }

 private:
  base::atomic<std::int64_t> since_epoch_{0};
};

/// See WEFT_TINY_TASK_NS and WEFT_REST_US.
inline constexpr std::chrono::nanoseconds tiny_task(WEFT_TINY_TASK_NS);
inline constexpr std::chrono::microseconds first_rest(WEFT_REST_US);

/// The rest of a strand: frames right above one of its frames, which is where one body's children stand one
/// after the other, are left to the owner for a while.
/// *Thread safety*: as deadline.
class steal_cooldown {
 public:
  /// Begins one, twice as long as the last, unless that was ended.
  void begin(const frame& below) noexcept {
    const std::uint32_t before = length_.load(base::memory_order_relaxed);
    const std::uint32_t length = !end_.any()                   ? WEFT_REST_US
                                 : before < 16u * WEFT_REST_US ? 2 * before
                                                               : 32u * WEFT_REST_US;
    length_.store(length, base::memory_order_relaxed);
    begin(below, deadline::clock::now() + std::chrono::microseconds(length));
  }
  /// Begins one that ends then, or goes on with a longer one.
  void begin(const frame& below, deadline::clock::time_point end) noexcept {
    if (below_.load(base::memory_order_relaxed) == &below && end_.get() >= end) return;
    below_.store(&below, base::memory_order_relaxed);
    end_.set(end);
  }
  /// Ends it: something was worth a theft.
  void end() noexcept { end_.clear(); }
  /// Whether there was one, and nothing since was worth a theft.
  bool any() const noexcept { return end_.any(); }
  /// Whether frames right above this one are to be left alone.
  bool covers(const frame& below) const noexcept {
    return below_.load(base::memory_order_relaxed) == &below && end_.lies_ahead();
  }
  deadline::clock::time_point last() const noexcept { return end_.get(); }

 private:
  deadline end_;
  base::atomic<const frame*> below_{nullptr};         // only compared
  base::atomic<std::uint32_t> length_{WEFT_REST_US};  // microseconds
};

}  // namespace weft::inline WEFT_ABI::sched
