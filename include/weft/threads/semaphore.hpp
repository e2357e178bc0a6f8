// SPDX-License-Identifier: BSL-1.0
// A semaphore at which bodies wait without keeping their worker.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <cstddef>

namespace weft::inline WEFT_ABI {

/// A number of permits. Who waits longest gets the next one. *Requires*: nobody waits when it is destroyed.
/// *Throws*: weft::cancelled from the functions that wait, if the run is stopped meanwhile; std::bad_alloc,
/// std::system_error. *Suspends*: those that wait. *Thread safety*: any.
class semaphore {
 public:
  /// Begins with so many permits. *Throws*: weft::error if there are less than none.
  explicit semaphore(std::ptrdiff_t permits) : permits_(permits) {
    if (permits < 0) throw error("weft: a semaphore cannot begin with a negative number of permits");
  }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  ~semaphore() {
    if (!waiters_.empty()) base::fail("a weft::semaphore is destroyed while somebody waits for it");
  }

  /// Waits for a permit, and takes it.
  void acquire() { wait_({}); }
  /// Takes a permit if there is one. *Returns*: whether.
  bool try_acquire() noexcept {
    bool got = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      const std::lock_guard hold(waiters_.mutex);
      got = take_();
    }
    if (got) threads::see(this);
    return got;
  }
  /// Waits so long at most. *Returns*: whether it has taken a permit.
  template <class Rep, class Period>
  bool try_acquire_for(const std::chrono::duration<Rep, Period>& time) {
    return wait_(threads::after(time));
  }
  /// Waits until then at most. *Returns*: as above.
  template <class Clock, class Duration>
  bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& time) {
    return threads::until_time(time, [this](threads::deadline d) { return wait_(d); });
  }
  /// Adds permits. *Throws*: weft::error if it is a negative number of them.
  void release(std::ptrdiff_t permits = 1) {
    if (permits < 0) throw error("weft: a negative number of permits is released to a semaphore");
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* chain = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      for (; permits != 0 && !waiters_.empty(); --permits) chain = waiters_.grant(*waiters_.first(), chain);
      permits_ += permits;
    }
    threads::waiter_list::tell(chain);
  }

 private:
  /// *Requires*: the lock is held.
  bool take_() noexcept {
    if (permits_ == 0) return false;
    --permits_;
    return true;
  }
  bool wait_(threads::deadline until) {
    if (try_acquire()) return true;
    bool got = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter w;
      got = threads::wait_at(waiters_, w, {"a semaphore", "acquires a weft::semaphore", this}, until,
                             [this] { return !take_(); });
    }
    if (got) threads::see(this);
    return got;
  }

  threads::waiter_list waiters_;
  std::ptrdiff_t permits_;
};

}  // namespace weft::inline WEFT_ABI
