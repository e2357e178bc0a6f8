// SPDX-License-Identifier: BSL-1.0
// A mutex for one writer or many readers, at which bodies wait without keeping their worker.
#pragma once

#include <weft/threads/detail/holder.hpp>
#include <weft/threads/detail/waiters.hpp>

namespace weft::inline WEFT_ABI {

/// A mutex that many bodies hold for reading, or one for writing. First come, first served: a reader does not
/// pass a writer that waits; readers that have come one after another are let in together. For
/// std::shared_lock and std::unique_lock. *Requires*: not held by the body that locks it; free when it is
/// destroyed. *Throws*, *Suspends*, *Thread safety*: as weft::mutex.
class shared_mutex {
 public:
  shared_mutex() noexcept : waiters_(&after_leaving_) {}
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  ~shared_mutex() {
    if (waiters_.readers != 0 || waiters_.writer)
      base::fail("a weft::shared_mutex is destroyed while it is locked");
  }

  /// Waits until nobody has the lock, and takes it.
  void lock() { wait_(true, {}); }
  /// Takes the lock if nobody has it. *Returns*: whether; as the next two.
  bool try_lock() noexcept { return try_(true); }
  /// Waits so long at most.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return wait_(true, threads::after(time));
  }
  /// Waits until then at most.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return threads::until_time(time, [this](threads::deadline d) { return wait_(true, d); });
  }
  /// Gives the lock back.
  void unlock() noexcept {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* chain = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (!waiters_.writer) base::fail("a weft::shared_mutex is unlocked that nobody has locked");
      if (!waiters_.who.leave())
        base::fail("a weft::shared_mutex is unlocked by a body that has not locked it");
      waiters_.writer = false;
      chain = waiters_.let_in();
    }
    threads::waiter_list::tell(chain);
  }

  /// Waits until no writer has the lock or waits for it, and takes it for reading.
  void lock_shared() { wait_(false, {}); }
  /// Takes it for reading if no writer has it or waits for it. *Returns*: whether; as the next two.
  bool try_lock_shared() noexcept { return try_(false); }
  /// Waits so long at most.
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& time) {
    return wait_(false, threads::after(time));
  }
  /// Waits until then at most.
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& time) {
    return threads::until_time(time, [this](threads::deadline d) { return wait_(false, d); });
  }
  /// Gives it back.
  void unlock_shared() noexcept {
    threads::let_see(&waiters_);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* chain = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      if (waiters_.readers == 0)
        base::fail("a weft::shared_mutex is unlocked for reading that nobody has locked so");
      if (--waiters_.readers == 0) chain = waiters_.let_in();
    }
    threads::waiter_list::tell(chain);
  }

 private:
  struct waiting : threads::waiter {
    bool writes = false;
  };
  /// Those who wait, and who is inside; under one lock.
  struct state : threads::waiter_list {
    using threads::waiter_list::waiter_list;
    std::size_t readers = 0;
    bool writer = false;
    threads::holder who;  ///< the writer; readers are counted only

    // The lock is held in the next two.
    /// `s`: who takes it; null: a kernel thread outside tasks.
    bool take(bool writes, const sched::strand* s) noexcept {
      if (writer || (writes && readers != 0)) return false;
      writes ? static_cast<void>(writer = true) : static_cast<void>(++readers);
      who.set(writes ? s : nullptr);
      return true;
    }
    /// *Returns*: the chain of those who are inside now.
    threads::wait_entry* let_in() noexcept {
      threads::wait_entry* chain = nullptr;
      while (!empty() && take(static_cast<waiting*>(first())->writes, first()->wakes->waiter))
        chain = grant(*first(), chain);
      return chain;
    }
  };
  static threads::wait_entry* after_leaving_(threads::waiter_list& l) noexcept {
    return static_cast<state&>(l).let_in();
  }

  void see_(bool writes) const noexcept {
    threads::see(this);
    if (writes) threads::see(&waiters_);
  }
  bool try_(bool writes) noexcept {
    bool got = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      const std::lock_guard hold(waiters_.mutex);
      got = waiters_.empty() && waiters_.take(writes, &sched::current());
    }
    if (got) see_(writes);
    return got;
  }
  bool wait_(bool writes, threads::deadline until) {
    if (try_(writes)) return true;
    bool got = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      waiting w;
      w.writes = writes;
      w.holder = &waiters_.who.who();
      got = threads::wait_at(waiters_, w, {"a shared mutex", "locks a weft::shared_mutex", this}, until, [&] {
        if (waiters_.empty() && waiters_.take(writes, &sched::current())) return false;
        if (waiters_.who.is_current())
          base::fail("a weft::shared_mutex is locked by a body that has locked it for writing already");
        return true;
      });
    }
    if (got) see_(writes);
    return got;
  }

  state waiters_;
};

}  // namespace weft::inline WEFT_ABI
