// SPDX-License-Identifier: BSL-1.0
// A mutex at which bodies wait without keeping their worker.
#pragma once

#include <weft/threads/detail/holder.hpp>
#include <weft/threads/detail/waiters.hpp>

namespace weft::inline WEFT_ABI {

/// A mutex for tasks, spawned threads and kernel threads outside tasks. A body that waits is suspended, and
/// its worker does other things; it may go on with another worker, as the lock belongs to the body, not to
/// the worker. Who unlocks hands the lock to who has waited longest. For std::lock_guard, std::unique_lock,
/// std::scoped_lock. *Requires*: not locked by the body that locks it; when it is destroyed nobody has the
/// lock or waits for it, but who has unlocked may still be inside unlock(). *Throws*: weft::cancelled from
/// the functions that wait, if the run is stopped meanwhile; std::bad_alloc, std::system_error if there is no
/// stack for the worker. *Suspends*: yes. *Cost*: two atomic instructions when nobody waits. *Thread safety*:
/// any. *Source*: KAAPI's mutex for threads (PASCO'07, section 3).
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  ~mutex() {
    // Relaxed: nobody else uses it any more.
    if (word_.load(base::memory_order_relaxed) != free)
      base::fail("a weft::mutex is destroyed while it is locked");
  }

  /// Waits until nobody else has the lock, and takes it.
  void lock() {
    if (take_()) [[likely]]
      holder_.set_current();
    else
      wait_({}, true);
    threads::see(this);
  }
  /// Takes the lock if nobody has it. *Returns*: whether.
  bool try_lock() noexcept {
    const bool got = take_();
    if (got) holder_.set_current();
    if (got) threads::see(this);
    return got;
  }
  /// Waits so long at most. *Returns*: whether it has taken the lock.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return try_lock() || wait_until_(threads::after(time));
  }
  /// Waits until then at most. *Returns*: as above.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return try_lock() || threads::until_time(time, [this](threads::deadline d) { return wait_until_(d); });
  }
  /// Gives the lock to who has waited longest, if anybody waits. *Requires*: the caller has it.
  void unlock() noexcept {
    threads::let_see(this);
    if (!holder_.leave()) base::fail("a weft::mutex is unlocked by a body that has not locked it");
    std::uint32_t expected = taken;
    // Release publishes what was done with the lock; pairs with take_ and must_wait in wait_.
    if (!word_.compare_exchange_strong(expected, free, base::memory_order_release,
                                       base::memory_order_relaxed)) [[unlikely]]
      hand_over_();
  }

 private:
  friend class condition_variable;
  /// wanted: taken, and somebody may wait.
  static constexpr std::uint32_t free = 0, taken = 1, wanted = 2;

  bool take_() noexcept {
    std::uint32_t expected = free;
    // Acquire pairs with unlock.
    return word_.compare_exchange_strong(expected, taken, base::memory_order_acquire,
                                         base::memory_order_relaxed);
  }
  bool wait_(threads::deadline until, bool stop) {
    [[maybe_unused]] const sched::races::unseen library;
    threads::waiter w;
    w.holder = &holder_.who();
    return threads::wait_at(
        waiters_, w, {"a mutex", "locks a weft::mutex", this}, until, stop,
        [this] {
          // Acquire pairs with unlock. Who unlocks looks for those who wait, under the lock of the list.
          const bool waits = word_.exchange(wanted, base::memory_order_acquire) != free;
          if (!waits)
            holder_.set_current();
          else if (holder_.is_current())
            base::fail("a weft::mutex is locked by a body that has locked it already");
          return waits;
        },
        [] {});
  }
  bool wait_until_(threads::deadline d) {
    const bool got = wait_(d, true);
    if (got) threads::see(this);
    return got;
  }
  WEFT_COLD void hand_over_() noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    std::uint32_t expected = 0;
    do {
      threads::wait_entry* next = nullptr;
      {
        const std::lock_guard hold(waiters_.mutex);
        if (word_.load(base::memory_order_relaxed) == free)  // its own, if the caller has locked it
          base::fail("a weft::mutex is unlocked that nobody has locked");
        if (waiters_.empty()) {
          word_.store(taken, base::memory_order_relaxed);
        } else {
          next = waiters_.grant(*waiters_.first());
          holder_.set(next->wakes->waiter);
        }
      }
      if (next != nullptr) return threads::waiter_list::tell(next);
      expected = taken;
      // Without the lock of the list: who finds the mutex free may destroy it. Release as in unlock.
    } while (!word_.compare_exchange_strong(expected, free, base::memory_order_release,
                                            base::memory_order_relaxed));
  }
  /// For those who must have it whatever happens.
  void lock_anyway_() noexcept {
    if (try_lock()) return;
    try {
      wait_({}, false);
    } catch (...) {  // no memory for another stack
      for (base::backoff wait; !try_lock();) wait.wait();
    }
  }

  base::atomic<std::uint32_t> word_{free};
  threads::waiter_list waiters_;
  threads::holder holder_;
};

}  // namespace weft::inline WEFT_ABI
