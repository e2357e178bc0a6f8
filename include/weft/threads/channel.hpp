// SPDX-License-Identifier: BSL-1.0
// A queue of bounded length between bodies, which can be closed.
#pragma once

#include <weft/threads/detail/channel_state.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>

namespace weft::inline WEFT_ABI {

namespace threads {
struct channel_access;
}

/// Items on their way from any number of bodies to any number of others, first in, first out. For waits at
/// several channels see weft::select. *Requires*: nobody waits when it is destroyed. *Throws*:
/// weft::cancelled from the functions that wait, if the run is stopped meanwhile: then the item is not in the
/// channel; what moving one's own item throws; std::bad_alloc, std::system_error. *Suspends*: those that
/// wait. *Thread safety*: any.
template <std::movable T>
class channel {
 public:
  /// Holds so many items at most. *Throws*: weft::error if that is none.
  explicit channel(std::size_t capacity) : state_(capacity) {
    if (capacity == 0) throw error("weft: a channel holds at least one item");
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() {
    if (!state_.waiters.empty()) base::fail("a weft::channel is destroyed while somebody waits for it");
  }

  /// Puts an item into the channel; waits while it is full. *Returns*: false if it is closed: then the item
  /// is as it was.
  bool push(T&& item) { return *push_(item, {}); }
  /// The same with a copy.
  bool push(const T& item)
    requires std::constructible_from<T, const T&>
  {
    return push(T(item));
  }
  /// Puts an item in if there is room. *Returns*: whether; if not, the item is as it was.
  bool try_push(T&& item) { return push_(item, threads::at_once).value_or(false); }
  /// The same with a copy.
  bool try_push(const T& item)
    requires std::constructible_from<T, const T&>
  {
    return try_push(T(item));
  }
  /// Puts an item in if there is room within this time. *Returns*: as above.
  template <class Rep, class Period>
  bool push_for(T&& item, const std::chrono::duration<Rep, Period>& time) {
    return push_(item, threads::after(time)).value_or(false);
  }
  /// The same with a copy.
  template <class Rep, class Period>
    requires std::constructible_from<T, const T&>
  bool push_for(const T& item, const std::chrono::duration<Rep, Period>& time) {
    return push_for(T(item), time);
  }
  /// Puts an item in if there is room until then. *Returns*: as above.
  template <class Clock, class Duration>
  bool push_until(T&& item, const std::chrono::time_point<Clock, Duration>& time) {
    std::optional<bool> done;
    threads::until_time(time, [&](threads::deadline d) { return (done = push_(item, d)).has_value(); });
    return done.value_or(false);
  }
  /// The same with a copy.
  template <class Clock, class Duration>
    requires std::constructible_from<T, const T&>
  bool push_until(const T& item, const std::chrono::time_point<Clock, Duration>& time) {
    return push_until(T(item), time);
  }
  /// Takes the oldest item; waits while there is none. *Returns*: nothing if the channel is closed and empty.
  std::optional<T> pop() {
    std::optional<T> item;
    pop_(item, {});
    return item;
  }
  /// Takes the oldest item if there is one. *Returns*: nothing if there was none.
  std::optional<T> try_pop() {
    std::optional<T> item;
    pop_(item, threads::at_once);
    return item;
  }
  /// Takes the oldest item if there is one within this time. *Returns*: as above.
  template <class Rep, class Period>
  std::optional<T> pop_for(const std::chrono::duration<Rep, Period>& time) {
    std::optional<T> item;
    pop_(item, threads::after(time));
    return item;
  }
  /// Takes the oldest item if there is one until then. *Returns*: as above.
  template <class Clock, class Duration>
  std::optional<T> pop_until(const std::chrono::time_point<Clock, Duration>& time) {
    std::optional<T> item;
    threads::until_time(time, [&](threads::deadline d) { return pop_(item, d); });
    return item;
  }
  /// No more items are put in; those that are there can be taken. All who wait go on.
  void close() noexcept {
    threads::let_see(&state_);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* all = nullptr;
    {
      const std::lock_guard hold(state_.waiters.mutex);
      state_.closed = true;
      state_.serve(all);
    }
    threads::waiter_list::tell(all);
  }
  /// Whether it was closed.
  bool closed() const noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    const std::lock_guard hold(state_.waiters.mutex);
    return state_.closed;
  }

 private:
  friend threads::channel_access;
  /// A push or a pop that is not settled at once waits as a selection of one case does.
  struct only_case final : threads::channel_case<T> {
    using threads::channel_case<T>::channel_case;
  };
  /// *Returns*: whether it has moved an item; nothing if the time is over.
  std::optional<bool> wait_(only_case& c, const char* how, threads::deadline until) const {
    threads::select_case* const cases[] = {&c};
    if (threads::selection().wait(cases, {"a channel", how, this}, until) == nullptr) return std::nullopt;
    return c.moved();
  }

  /// *Returns*: whether the item is in the channel, which else is closed; nothing if the time is over.
  std::optional<bool> push_(T& item, threads::deadline until) {
    threads::let_see(&state_);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* next = nullptr;
    std::optional<bool> done;
    {
      const std::lock_guard hold(state_.waiters.mutex);
      if (state_.settles_put()) {
        done = state_.put(item);
        state_.serve(next);
      }
    }
    threads::waiter_list::tell(next);
    if (done.has_value() || until.is_at_once()) return done;
    only_case c(state_, item);
    return wait_(c, "pushes into a weft::channel", until);
  }
  /// *Returns*: whether there is an item, or the channel is closed; not if the time is over.
  bool pop_(std::optional<T>& item, threads::deadline until) {
    bool settled = false;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::wait_entry* next = nullptr;
      {
        const std::lock_guard hold(state_.waiters.mutex);
        if ((settled = state_.settles_take())) {
          state_.take(item);
          state_.serve(next);
        }
      }
      threads::waiter_list::tell(next);
      if (!settled && !until.is_at_once()) {
        only_case c(state_, item);
        settled = wait_(c, "pops from a weft::channel", until).has_value();
      }
    }
    threads::see(&state_);
    return settled;
  }

  mutable threads::channel_state<T> state_;
};

}  // namespace weft::inline WEFT_ABI
