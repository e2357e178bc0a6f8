// SPDX-License-Identifier: BSL-1.0
// What is to happen at a time, unless it is taken back before.
#pragma once

#include <weft/base/platform.hpp>

#include <map>
#include <mutex>

namespace weft::inline WEFT_ABI::sched {

/// Something that happens at a time.
struct timer {
  base::clock::time_point when{};             ///< constant while it is in a queue
  void (*expire)(timer&) noexcept = nullptr;  ///< called at most once, not before `when`
};

/// The timers of an engine. Workers that look for work call those that are due.
/// *Thread safety*: any thread, any member.
class timer_queue {
 public:
  static constexpr auto never = base::clock::time_point::max();

  /// *Returns*: whether it is the first one to expire now. *Throws*: std::bad_alloc.
  bool add(timer& t) {
    const std::lock_guard hold(mutex_);
    const auto at = timers_.emplace(t.when, &t);
    note_earliest();
    return at == timers_.begin();
  }
  /// It is not called after this returns, and no call is under way.
  void remove(timer& t) noexcept {
    const std::lock_guard hold(mutex_);
    const auto [begin, end] = timers_.equal_range(t.when);
    for (auto at = begin; at != end; ++at)
      if (at->second == &t) {
        timers_.erase(at);
        break;
      }
    note_earliest();
  }
  /// When the first one expires. A hint: whoever adds one that is earlier wakes a worker that sleeps.
  base::clock::time_point earliest() const noexcept {
    return base::clock::time_point(base::clock::duration(earliest_.load(base::memory_order_relaxed)));
  }
  /// Calls those that are due.
  void call_due() noexcept {
    const std::lock_guard hold(mutex_);
    const auto now = base::clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      timer& t = *timers_.begin()->second;
      timers_.erase(timers_.begin());
      t.expire(t);
    }
    note_earliest();
  }

 private:
  /// *Requires*: the lock is held.
  void note_earliest() noexcept {
    const auto first = timers_.empty() ? never : timers_.begin()->first;
    // Relaxed: a fence follows where a sleeper must see it (engine::add_timer).
    earliest_.store(first.time_since_epoch().count(), base::memory_order_relaxed);
  }

  base::mutex mutex_;
  std::multimap<base::clock::time_point, timer*> timers_;
  base::atomic<base::clock::rep> earliest_{never.time_since_epoch().count()};
};

}  // namespace weft::inline WEFT_ABI::sched
