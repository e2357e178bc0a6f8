// SPDX-License-Identifier: BSL-1.0
// How long thieves leave frames of tiny tasks to their owner.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/task/granularity.hpp>

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

/// For how long thieves leave the frames right above one frame of a strand, where the children of one body
/// are, to the owner. *Thread safety*: as deadline.
class steal_cooldown {
 public:
  /// Begins one, twice as long as the last, unless that was long ago.
  void begin(const frame& below) noexcept { begin_since(below, deadline::clock::now()); }
  /// The same, if what has shown that it is needed began then: a long trial does not make the last one old.
  void begin_since(const frame& below, deadline::clock::time_point since) noexcept {
    const auto now = deadline::clock::now();
    const std::uint32_t before = length_.load(base::memory_order_relaxed);
    const bool recent = since - before_.get() < std::chrono::microseconds(4 * before);
    const std::uint32_t length = !recent ? first : 2 * before < longest ? 2 * before : longest;
    length_.store(length, base::memory_order_relaxed);
    before_.set(now + std::chrono::microseconds(length));
    begin(below, before_.get());
  }
  /// Begins one that ends then, unless a longer one has begun.
  void begin(const frame& below, deadline::clock::time_point end) noexcept {
    if (below_.load(base::memory_order_relaxed) == &below && end_.get() >= end) return;
    below_.store(&below, base::memory_order_relaxed);
    end_.set(end);
  }
  /// Begins one after a search in vain that has lasted so long, unless a longer one has begun. `least`: it
  /// does not end before.
  void begin_after_search(const frame& below, deadline::clock::duration search,
                          deadline::clock::time_point least) noexcept {
    const unsigned times = searched_.exchange(true, base::memory_order_relaxed)
                               ? granularity::fruitless_search
                               : granularity::first_fruitless_search;
    const auto end = deadline::clock::now() + times * search;
    begin(below, end < least ? least : end);
  }
  /// Ends it: something was worth a theft.
  void end() noexcept { end_.clear(); }
  /// Ends and forgets it.
  void reset() noexcept {
    end_.clear();
    before_.clear();
    if (searched_.load(base::memory_order_relaxed)) searched_.store(false, base::memory_order_relaxed);
  }
  /// Whether there was one, and nothing since was worth a theft.
  bool any() const noexcept { return end_.any(); }
  /// Whether thieves are to leave the frames right above this one alone.
  bool covers(const frame& below) const noexcept {
    return below_.load(base::memory_order_relaxed) == &below && end_.lies_ahead();
  }
  /// Whether it is for the frames right above this one, and something since would have to show that they are
  /// worth a theft.
  bool is_for(const frame& below) const noexcept {
    return any() && below_.load(base::memory_order_relaxed) == &below;
  }
  /// Whether it has not come to its end.
  bool lies_ahead() const noexcept { return end_.lies_ahead(); }
  deadline::clock::time_point last() const noexcept { return end_.get(); }

 private:
  static constexpr std::uint32_t first = granularity::first_cooldown.count(),
                                 longest = granularity::longest_cooldown.count();

  deadline end_, before_;                      // before_: the end of the last one of doubled length
  base::atomic<const frame*> below_{nullptr};  // only compared
  base::atomic<std::uint32_t> length_{first};  // microseconds
  base::atomic<bool> searched_{false};         // in vain, since reset
};

/// For how long thieves do not enter a strand in which there was nothing but graphs.
/// *Thread safety*: any; all of it is hints, hence relaxed throughout.
class visit_pause {
 public:
  /// Begins one, twice as long as the last.
  void begin() noexcept {
    const std::uint32_t length = length_.load(base::memory_order_relaxed);
    length_.store(2 * length < longest ? 2 * length : longest, base::memory_order_relaxed);
    end_.set(deadline::clock::now() + std::chrono::microseconds(length));
  }
  /// Ends it: there is something else now, or the owner has exposed a task.
  void end() noexcept { end_.clear(); }
  /// Ends and forgets it.
  void reset() noexcept {
    end_.clear();
    if (length_.load(base::memory_order_relaxed) != first) length_.store(first, base::memory_order_relaxed);
  }
  bool goes_on() const noexcept { return end_.lies_ahead(); }
  deadline::clock::time_point last() const noexcept { return end_.get(); }

 private:
  static constexpr std::uint32_t first = granularity::first_visit_pause.count(),
                                 longest = granularity::longest_visit_pause.count();

  deadline end_;
  base::atomic<std::uint32_t> length_{first};  // microseconds
};

}  // namespace weft::inline WEFT_ABI::sched
