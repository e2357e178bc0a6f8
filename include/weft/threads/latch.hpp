// SPDX-License-Identifier: BSL-1.0
// A count that goes down once, and bodies that wait until it is zero.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <cstddef>

namespace weft::inline WEFT_ABI {

/// A count for which bodies wait until it is zero, and stays there. *Requires*: nobody waits when it is
/// destroyed. *Throws*: weft::error if the count would become negative; weft::cancelled from the functions
/// that wait, if the run is stopped meanwhile; std::bad_alloc, std::system_error. *Suspends*: those that
/// wait. *Thread safety*: any.
class latch {
 public:
  /// Begins with this count.
  explicit latch(std::ptrdiff_t count) : count_(count) {
    if (count < 0) throw error("weft: a latch cannot begin with a negative count");
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;
  ~latch() {
    if (!waiters_.empty()) base::fail("a weft::latch is destroyed while somebody waits for it");
  }

  /// Takes `n` off the count.
  void count_down(std::ptrdiff_t n = 1) {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* all = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (n < 0 || n > count_) throw error("weft: a latch is counted down below zero, or up");
      count_ -= n;
      if (count_ == 0) all = waiters_.grant_all();
    }
    threads::waiter_list::tell(all);
  }
  /// Whether the count is zero.
  bool try_wait() const noexcept {
    bool over = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      const std::lock_guard hold(waiters_.mutex);
      over = count_ == 0;
    }
    if (over) threads::see(this);
    return over;
  }
  /// Waits until the count is zero.
  void wait() { wait_({}); }
  /// Waits so long at most. *Returns*: whether the count is zero.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& time) {
    return wait_(threads::after(time));
  }
  /// Waits until then at most. *Returns*: as above.
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    return threads::until_time(time, [this](threads::deadline d) { return wait_(d); });
  }
  /// Takes `n` off the count, and waits until it is zero.
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }
  /// The same; waits so long at most. `n` is taken off also if the time is over. *Returns*: whether the count
  /// is zero.
  template <class Rep, class Period>
  bool arrive_and_wait_for(const std::chrono::duration<Rep, Period>& time, std::ptrdiff_t n = 1) {
    count_down(n);
    return wait_for(time);
  }
  /// The same; waits until then at most.
  template <class Clock, class Duration>
  bool arrive_and_wait_until(const std::chrono::time_point<Clock, Duration>& time, std::ptrdiff_t n = 1) {
    count_down(n);
    return wait_until(time);
  }

 private:
  bool wait_(threads::deadline until) {
    bool over = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter w;
      over = threads::wait_at(waiters_, w, {"a latch", "waits for a weft::latch", this}, until,
                              [this] { return count_ != 0; });
    }
    if (over) threads::see(this);
    return over;
  }

  mutable threads::waiter_list waiters_;
  std::ptrdiff_t count_;
};

}  // namespace weft::inline WEFT_ABI
