// SPDX-License-Identifier: BSL-1.0
// Who waits at an object, in the order of arrival, and how each of these waits ends.
#pragma once

#include <weft/base/error.hpp>
#include <weft/blocking/definitions.hpp>
#include <weft/blocking/wait.hpp>
#include <weft/threads/detail/time.hpp>

#include <mutex>
#include <optional>

namespace weft::inline WEFT_ABI::threads {

/// How far a wait is.
enum class wait_state : std::uint8_t { not_begun, waiting, granted, timed_out, stopped };

class waiter_list;

/// A place in a list of those who wait.
///
/// Who may touch it when: the lock of the list, until the state is none of `not_begun` and `waiting`; then
/// whoever waits. Who grants it reads `behind` and `wakes` before it sets the signal.
struct wait_entry {
  wait_entry* behind = nullptr;  ///< in the list, or in a chain of those who are to be told
  wait_entry* before = nullptr;
  sched::signal* wakes = nullptr;  ///< of the one who waits
  wait_state is = wait_state::not_begun;
};

/// A body, or a kernel thread outside tasks, that waits at one list. Who may touch it when: the members of
/// its bases as these say; `where` is constant when others know of it.
struct waiter : wait_entry, sched::abandonable, sched::timer {
  waiter_list* where = nullptr;

  waiter() noexcept { wakes = this; }
};

/// Those who wait at an object, and the lock of that object.
class waiter_list {
 public:
  /// `after_leaving`: called under the lock when one has left early: *returns* the chain of those who are
  /// granted thereby.
  explicit constexpr waiter_list(wait_entry* (*after_leaving)(waiter_list&) noexcept = nullptr) noexcept
      : after_leaving_(after_leaving) {}
  waiter_list(const waiter_list&) = delete;
  waiter_list& operator=(const waiter_list&) = delete;

  base::spin_lock mutex;

  // The lock is held in the next four.
  bool empty() const noexcept { return first_ == nullptr; }
  wait_entry* first() const noexcept { return first_; }
  void append(wait_entry& w) noexcept {
    w.is = wait_state::waiting;
    w.behind = nullptr;
    w.before = last_;
    (last_ != nullptr ? last_->behind : first_) = &w;
    last_ = &w;
  }
  /// Takes one out, and puts it before a chain of those who are to be told. *Returns*: the chain.
  wait_entry* grant(wait_entry& w, wait_entry* chain = nullptr) noexcept {
    remove_(w);
    w.is = wait_state::granted;
    w.behind = chain;
    return &w;
  }
  /// Takes one out who does not wait here any more.
  void withdraw(wait_entry& w) noexcept {
    remove_(w);
    w.is = wait_state::not_begun;
  }
  /// Takes all out. *Returns*: the chain.
  wait_entry* grant_all() noexcept {
    wait_entry* const chain = first_;
    for (wait_entry* w = chain; w != nullptr; w = w->behind) w->is = wait_state::granted;
    first_ = last_ = nullptr;
    return chain;
  }

  /// Continues those of a chain. *Requires*: the lock is not held.
  static void tell(wait_entry* chain) noexcept {
    while (chain != nullptr) sched::raise_signal(*std::exchange(chain, chain->behind)->wakes);
  }
  /// Ends a wait for the time, or for the stop of the run, unless it has ended. *Requires*: as tell.
  void end_early(waiter& w, wait_state how) noexcept {
    wait_entry* others = nullptr;
    bool left = false;
    {
      const std::lock_guard hold(mutex);
      left = w.is == wait_state::waiting;
      if (left) remove_(w);
      if (left || w.is == wait_state::not_begun) w.is = how;
      if (left && after_leaving_ != nullptr) others = after_leaving_(*this);
    }
    if (left) sched::raise_signal(w);
    tell(others);
  }

 private:
  void remove_(wait_entry& w) noexcept {
    (w.before != nullptr ? w.before->behind : first_) = w.behind;
    (w.behind != nullptr ? w.behind->before : last_) = w.before;
  }

  wait_entry* first_ = nullptr;
  wait_entry* last_ = nullptr;
  wait_entry* (*after_leaving_)(waiter_list&) noexcept;
};

/// What is waited for, for reports, what waits, for violations, and which object: "a mutex", "locks a mutex".
struct wait_text {
  const char* what;
  const char* how;
  const void* object = nullptr;
};

/// Waits at a list. `must_wait()` says, under its lock, whether that is necessary; `before_wait()` is called
/// without the lock when the caller is in the list, and must not throw. *Returns*: false if the time
/// is over. *Throws*: cancelled if the run is stopped meanwhile and `stop` says that this matters;
/// std::bad_alloc, std::system_error before anything was done. *Suspends*: yes.
template <class Must, class Before>
bool wait_at(waiter_list& list, waiter& w, const wait_text& text, deadline until, bool stop, Must must_wait,
             Before before_wait) {
  w.where = &list;
  w.what = text.what;
  w.object = text.object;
  w.give_up = [](sched::abandonable& a) noexcept {
    auto& self = static_cast<waiter&>(a);
    self.where->end_early(self, wait_state::stopped);
  };
  w.when = until.at;
  w.expire = [](sched::timer& t) noexcept {
    auto& self = static_cast<waiter&>(t);
    self.where->end_early(self, wait_state::timed_out);
  };
  {
    sched::signal_wait here(w, text.how, {.expiry = until.exists() ? &w : nullptr, .stop = stop});
    bool waits = false;
    {
      const std::lock_guard hold(list.mutex);
      if (!must_wait()) {
        w.is = wait_state::granted;
      } else if (w.is == wait_state::not_begun) {
        list.append(w);
        waits = true;
      }
    }
    if (waits) {
      before_wait();
      here.wait();
    }
  }
  if (w.is == wait_state::stopped) throw cancelled();
  return w.is == wait_state::granted;
}
template <class Must>
bool wait_at(waiter_list& list, waiter& w, const wait_text& text, deadline until, Must must_wait) {
  return wait_at(list, w, text, until, true, must_wait, [] {});
}

/// What one body does before it lets others go on is seen by them; for Thread Sanitizer, where it does not
/// see what the library does. *Requires*: not hidden.
inline void let_see([[maybe_unused]] const void* object) noexcept {
#if WEFT_RACES
  context::races::release(const_cast<void*>(object));
#endif
}
inline void see([[maybe_unused]] const void* object) noexcept {
#if WEFT_RACES
  context::races::acquire(const_cast<void*>(object));
#endif
}

}  // namespace weft::inline WEFT_ABI::threads
