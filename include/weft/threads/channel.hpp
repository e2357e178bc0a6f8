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
  bool push(T&& item) { return push_(item, {}); }
  /// The same with a copy.
  bool push(const T& item) {
    T copy(item);
    return push_(copy, {});
  }
  /// Puts an item in if there is room, or within this time. *Returns*: whether; if not, the item is as it
  /// was.
  bool try_push(T&& item) { return push_(item, threads::at_once); }
  /// The same.
  template <class Rep, class Period>
  bool push_for(T&& item, const std::chrono::duration<Rep, Period>& time) {
    return push_(item, threads::after(time));
  }
  /// Takes the oldest item; waits while there is none. *Returns*: nothing if the channel is closed and empty.
  std::optional<T> pop() { return pop_({}); }
  /// Takes the oldest item if there is one, or within this time. *Returns*: nothing if there was none.
  std::optional<T> try_pop() { return pop_(threads::at_once); }
  /// The same.
  template <class Rep, class Period>
  std::optional<T> pop_for(const std::chrono::duration<Rep, Period>& time) {
    return pop_(threads::after(time));
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
  static bool wait_(only_case& c, const char* how, threads::deadline until) {
    threads::select_case* const cases[] = {&c};
    return threads::selection().wait(cases, {"a channel", how}, until) != nullptr && c.moved();
  }

  bool push_(T& item, threads::deadline until) {
    threads::let_see(&state_);
    [[maybe_unused]] const sched::races::unseen library;
    threads::wait_entry* next = nullptr;
    bool settled = false, done = false;
    {
      const std::lock_guard hold(state_.waiters.mutex);
      if ((settled = state_.settles_put())) {
        done = state_.put(item);
        state_.serve(next);
      }
    }
    threads::waiter_list::tell(next);
    if (settled || until.is_at_once()) return done;
    only_case c(state_, item);
    return wait_(c, "pushes into a weft::channel", until);
  }
  std::optional<T> pop_(threads::deadline until) {
    std::optional<T> item;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::wait_entry* next = nullptr;
      bool settled = false;
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
        wait_(c, "pops from a weft::channel", until);
      }
    }
    threads::see(&state_);
    return item;
  }

  mutable threads::channel_state<T> state_;
};

}  // namespace weft::inline WEFT_ABI
