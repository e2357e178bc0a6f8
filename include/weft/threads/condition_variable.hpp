// SPDX-License-Identifier: BSL-1.0
// Bodies that wait until another one says that something has changed.
#pragma once

#include <weft/threads/mutex.hpp>

#include <condition_variable>

namespace weft::inline WEFT_ABI {

/// A condition variable for weft::mutex. Its waits end only when they are notified, when their time is over,
/// or when the run is stopped: never without cause. *Requires*: nobody waits when it is destroyed.
/// *Throws*: weft::cancelled from the functions that wait, if the run is stopped meanwhile; the mutex is
/// locked then, as always; std::bad_alloc, std::system_error. *Suspends*: those that wait. *Thread safety*:
/// any.
class condition_variable {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  ~condition_variable() {
    if (!waiters_.empty()) base::fail("a weft::condition_variable is destroyed while somebody waits for it");
  }

  /// Continues who has waited longest.
  void notify_one() noexcept {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* next = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (!waiters_.empty()) next = waiters_.grant(*waiters_.first());
    }
    threads::waiter_list::tell(next);
  }
  /// Continues all.
  void notify_all() noexcept {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* all = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      all = waiters_.grant_all();
    }
    threads::waiter_list::tell(all);
  }

  /// Unlocks the mutex, waits, and locks it again. *Requires*: `lock` owns it.
  void wait(std::unique_lock<mutex>& lock) { wait_(lock, {}); }
  /// Waits until `ready()`, which is called with the mutex locked.
  template <class Ready>
  void wait(std::unique_lock<mutex>& lock, Ready ready) {
    while (!ready()) wait(lock);
  }
  /// Waits so long at most.
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& time) {
    return status_(wait_(lock, threads::after(time)));
  }
  /// Waits until `ready()`, so long at most. *Returns*: what `ready()` says in the end.
  template <class Rep, class Period, class Ready>
  bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& time, Ready ready) {
    const threads::deadline until = threads::after(time);
    while (!ready())
      if (!wait_(lock, until)) return ready();
    return true;
  }
  /// Waits until then at most; less where the clock is set back meanwhile.
  template <class Clock, class Duration>
  std::cv_status wait_until(std::unique_lock<mutex>& lock,
                            const std::chrono::time_point<Clock, Duration>& time) {
    // Not once more: somebody may notify in between.
    return status_(wait_(lock, threads::at(time)) || Clock::now() < time);
  }
  /// Waits until `ready()`, until then at most. *Returns*: what `ready()` says in the end.
  template <class Clock, class Duration, class Ready>
  bool wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& time,
                  Ready ready) {
    while (!ready())
      if (wait_until(lock, time) == std::cv_status::timeout) return ready();
    return true;
  }

 private:
  static std::cv_status status_(bool in_time) noexcept {
    return in_time ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  /// Locks the mutex again, whatever has ended the wait.
  struct relocked {
    mutex* unlocked = nullptr;
    ~relocked() {
      if (unlocked == nullptr) return;
      {
        [[maybe_unused]] const sched::races::unseen library;
        unlocked->lock_anyway_();
      }
      threads::see(unlocked);
    }
  };
  bool wait_(std::unique_lock<mutex>& lock, threads::deadline until) {
    if (!lock.owns_lock())
      base::fail("a weft::condition_variable is waited for with a lock that does not own its mutex");
    relocked at_end;
    threads::let_see(lock.mutex());
    bool in_time = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter w;
      in_time = threads::wait_at(
          waiters_, w, {"a condition variable", "waits for a weft::condition_variable", this}, until, true,
          [] { return true; },
          [&] {
            at_end.unlocked = lock.mutex();
            lock.mutex()->unlock();
          });
    }
    threads::see(this);
    return in_time;
  }

  threads::waiter_list waiters_;
};

}  // namespace weft::inline WEFT_ABI
