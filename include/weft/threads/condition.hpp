// SPDX-License-Identifier: BSL-1.0
// A value, and bodies that wait until it is as they want it.
#pragma once

#include <weft/flow/definitions.hpp>
#include <weft/flow/no_suspend.hpp>
#include <weft/threads/detail/waiters.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <utility>

namespace weft::inline WEFT_ABI {

/// A value for which bodies wait. Whoever changes it continues those who wait for the new value, also if it
/// changes again before they run. *Requires*: nobody waits when it is destroyed; copying a value and
/// comparing values take a short time and do not wait. *Throws*: weft::cancelled from the functions that
/// wait, if the run is stopped meanwhile; what copying, comparing or the predicate throws; std::bad_alloc,
/// std::system_error. *Suspends*: those that wait. *Thread safety*: any.
/// *Source*: the conditions with a value of KAAPI (PASCO'07, section 3).
template <std::copyable T>
class condition {
 public:
  /// Begins with a value.
  explicit condition(T value = T()) : value_(std::move(value)) {}
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;
  ~condition() {
    if (!waiters_.empty()) base::fail("a weft::condition is destroyed while somebody waits for it");
  }

  /// The value now.
  T get() const {
    threads::see(this);
    [[maybe_unused]] const sched::races::unseen library;
    const std::lock_guard hold(waiters_.mutex);
    return value_;
  }
  /// Changes the value.
  void set(T value) {
    update([&value](T& v) { v = std::move(value); });
  }
  /// Calls `change(value)`, while nobody else looks at it or changes it. *Requires*: it does not wait.
  /// *Returns*: what it returns.
  template <class F>
    requires std::invocable<F&, T&>
  decltype(auto) update(F change) {
    threads::see(this);
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    struct told {
      threads::wait_entry* chain = nullptr;
      ~told() { threads::waiter_list::tell(chain); }
    } at_end;
#if WEFT_CHECKED
    const this_task::no_suspend mark("a weft::condition that is being changed");
#endif
    const std::lock_guard hold(waiters_.mutex);
    const struct look {
      condition& of;
      told& to;
      ~look() { of.grant_(to.chain); }
    } after_change{*this, at_end};
    return change(value_);
  }

  /// Waits until the value equals `v`. *Returns*: it.
  T wait_equal(const T& v)
    requires std::equality_comparable<T>
  {
    return wait([&v](const T& now) { return now == v; });
  }
  /// The same with a limit of time. *Returns*: the value; nothing if the time is over.
  /// *Example*: `if (!stage.wait_equal_for(1s, 2)) report_a_delay();`
  template <class Rep, class Period>
    requires std::equality_comparable<T>
  std::optional<T> wait_equal_for(const std::chrono::duration<Rep, Period>& time, const T& v) {
    return wait_for(time, [&v](const T& now) { return now == v; });
  }
  /// The same.
  template <class Clock, class Duration>
    requires std::equality_comparable<T>
  std::optional<T> wait_equal_until(const std::chrono::time_point<Clock, Duration>& time, const T& v) {
    return wait_until(time, [&v](const T& now) { return now == v; });
  }
  /// Waits until the value is another one than `v`. *Returns*: it.
  T wait_not_equal(const T& v)
    requires std::equality_comparable<T>
  {
    return wait([&v](const T& now) { return !(now == v); });
  }
  /// The same with a limit of time. *Returns*: the value then; nothing if the time is over.
  template <class Rep, class Period>
    requires std::equality_comparable<T>
  std::optional<T> wait_not_equal_for(const std::chrono::duration<Rep, Period>& time, const T& v) {
    return wait_for(time, [&v](const T& now) { return !(now == v); });
  }
  /// The same.
  template <class Clock, class Duration>
    requires std::equality_comparable<T>
  std::optional<T> wait_not_equal_until(const std::chrono::time_point<Clock, Duration>& time, const T& v) {
    return wait_until(time, [&v](const T& now) { return !(now == v); });
  }
  /// Waits until `ready(value)`; whoever changes the value calls that, too. *Requires*: it does not wait.
  /// *Returns*: the value then.
  template <std::predicate<const T&> Ready>
  T wait(Ready ready) {
    return *wait_(ready, {});
  }
  /// The same with a limit of time. *Returns*: nothing if the time is over.
  template <class Rep, class Period, std::predicate<const T&> Ready>
  std::optional<T> wait_for(const std::chrono::duration<Rep, Period>& time, Ready ready) {
    return wait_(ready, threads::after(time));
  }
  /// The same.
  template <class Clock, class Duration, std::predicate<const T&> Ready>
  std::optional<T> wait_until(const std::chrono::time_point<Clock, Duration>& time, Ready ready) {
    std::optional<T> seen;
    threads::until_time(time, [&](threads::deadline d) { return (seen = wait_(ready, d)).has_value(); });
    return seen;
  }

 private:
  /// Who waits, for what, and what came of it.
  struct waiting : threads::waiter {
    bool (*ready)(void* predicate, const T& value) = nullptr;
    void* predicate = nullptr;
    std::optional<T> seen;
    std::exception_ptr failure;

    /// Whether the wait is over with this value, be it by an exception.
    bool is_over(const T& value) noexcept {
      try {
        if (!ready(predicate, value)) return false;
        seen.emplace(value);
      } catch (...) {
        failure = std::current_exception();
      }
      return true;
    }
  };
  /// *Requires*: the lock is held.
  void grant_(threads::wait_entry*& chain) noexcept {
    for (threads::wait_entry* w = waiters_.first(); w != nullptr;) {
      threads::wait_entry& here = *std::exchange(w, w->behind);
      if (static_cast<waiting&>(here).is_over(value_)) chain = waiters_.grant(here, chain);
    }
  }
  template <class Ready>
  std::optional<T> wait_(Ready& ready, threads::deadline until) {
    waiting w;
    {
      [[maybe_unused]] const sched::races::unseen library;
      w.ready = [](void* p, const T& value) -> bool { return std::invoke(*static_cast<Ready*>(p), value); };
      w.predicate = const_cast<void*>(static_cast<const void*>(&ready));
      threads::wait_at(waiters_, w, {"a condition", "waits for a weft::condition", this}, until, [&] {
#if WEFT_CHECKED
        const this_task::no_suspend mark("a weft::condition that is looked at");
#endif
        return !w.is_over(value_);
      });
    }
    threads::see(this);
    if (w.failure) std::rethrow_exception(w.failure);
    return std::move(w.seen);
  }

  mutable threads::waiter_list waiters_;
  T value_;
};

}  // namespace weft::inline WEFT_ABI
