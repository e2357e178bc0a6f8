// SPDX-License-Identifier: BSL-1.0
// A queue of bounded length between bodies, which can be closed.
#pragma once

#include <weft/threads/detail/waiters.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

namespace weft::inline WEFT_ABI {

/// Items on their way from any number of bodies to any number of others, first in, first out. *Requires*:
/// nobody waits when it is destroyed. *Throws*: weft::cancelled from the functions that wait, if the run is
/// stopped meanwhile: then the item is not in the channel; what moving an item throws; std::bad_alloc,
/// std::system_error. *Suspends*: those that wait. *Thread safety*: any.
template <std::movable T>
class channel {
 public:
  /// Holds so many items at most. *Throws*: weft::error if that is none.
  explicit channel(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) throw error("weft: a channel holds at least one item");
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() {
    if (!waiters_.empty()) base::fail("a weft::channel is destroyed while somebody waits for it");
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
  bool try_push(T&& item) { return push_(item, {base::clock::time_point::min()}); }
  /// The same.
  template <class Rep, class Period>
  bool push_for(T&& item, const std::chrono::duration<Rep, Period>& time) {
    return push_(item, threads::after(time));
  }
  /// Takes the oldest item; waits while there is none. *Returns*: nothing if the channel is closed and empty.
  std::optional<T> pop() { return pop_({}); }
  /// Takes the oldest item if there is one, or within this time. *Returns*: nothing if there was none.
  std::optional<T> try_pop() { return pop_({base::clock::time_point::min()}); }
  /// The same.
  template <class Rep, class Period>
  std::optional<T> pop_for(const std::chrono::duration<Rep, Period>& time) {
    return pop_(threads::after(time));
  }
  /// No more items are put in; those that are there can be taken. All who wait go on.
  void close() noexcept {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::waiter* all = nullptr;
    {
      const std::lock_guard hold(waiters_.mutex);
      closed_ = true;
      all = waiters_.grant_all();
    }
    threads::waiter_list::tell(all);
  }
  /// Whether it was closed.
  bool closed() const noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    const std::lock_guard hold(waiters_.mutex);
    return closed_;
  }

 private:
  /// Those who wait all wait for the same: for room, or for items. Who is granted has got either. The item of
  /// a producer, or of a consumer, changes hands under the lock.
  struct waiting : threads::waiter {
    T* given = nullptr;
    std::optional<T>* taken = nullptr;
  };
  static bool at_once_(threads::deadline d) noexcept { return d.at == base::clock::time_point::min(); }

  bool push_(T& item, threads::deadline until) {
    threads::let_see(this);
    [[maybe_unused]] const sched::races::unseen library;
    threads::waiter* next = nullptr;
    bool done = false, full = false;
    {
      const std::lock_guard hold(waiters_.mutex);
      full = !put_(item, next, done);
    }
    threads::waiter_list::tell(next);
    if (!full || at_once_(until)) return done;
    waiting w;
    w.given = &item;
    threads::wait_at(waiters_, w, {"a channel", "pushes into a weft::channel"}, until, [&] {
      threads::waiter* other = nullptr;
      const bool waits = !put_(item, other, done);
      next = other;
      return waits;
    });
    threads::waiter_list::tell(next);
    return done || w.given == nullptr;
  }
  /// *Returns*: whether that is settled: `done` says how. *Requires*: the lock is held.
  bool put_(T& item, threads::waiter*& next, bool& done) {
    if (closed_) return true;
    if (auto* const w = static_cast<waiting*>(waiters_.first()); w != nullptr && w->taken != nullptr) {
      w->taken->emplace(std::move(item));
      next = waiters_.grant(*w);
    } else if (items_.size() < capacity_) {
      items_.push_back(std::move(item));
    } else {
      return false;
    }
    return done = true;
  }

  std::optional<T> pop_(threads::deadline until) {
    std::optional<T> item;
    {
      [[maybe_unused]] const sched::races::unseen library;
      threads::waiter* next = nullptr;
      bool settled = false;
      {
        const std::lock_guard hold(waiters_.mutex);
        settled = take_(item, next);
      }
      threads::waiter_list::tell(std::exchange(next, nullptr));
      if (!settled && !at_once_(until)) {
        waiting w;
        w.taken = &item;
        threads::wait_at(waiters_, w, {"a channel", "pops from a weft::channel"}, until,
                         [&] { return !take_(item, next); });
        threads::waiter_list::tell(next);
      }
    }
    threads::see(this);
    return item;
  }
  /// *Returns*: whether that is settled. *Requires*: the lock is held.
  bool take_(std::optional<T>& item, threads::waiter*& next) {
    if (items_.empty()) return closed_;
    item.emplace(std::move(items_.front()));
    items_.pop_front();
    if (auto* const w = static_cast<waiting*>(waiters_.first()); w != nullptr && w->given != nullptr) {
      items_.push_back(std::move(*w->given));
      w->given = nullptr;
      next = waiters_.grant(*w);
    }
    return true;
  }

  mutable threads::waiter_list waiters_;
  std::deque<T> items_;
  std::size_t capacity_;
  bool closed_ = false;
};

}  // namespace weft::inline WEFT_ABI
