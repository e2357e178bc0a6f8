// SPDX-License-Identifier: BSL-1.0
// What is to happen at a time, unless it is taken back before.
#pragma once

#include <weft/base/lock.hpp>

#include <mutex>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

/// Something that happens at a time.
///
/// Who may touch it when: `when` and `expire` are set before it is added; the rest belongs to the lock of the
/// queue.
struct timer {
  base::clock::time_point when{};
  void (*expire)(timer&) noexcept = nullptr;  ///< called at most once, not before `when`
  bool queued = false;
  timer* child = nullptr;     ///< the first of those below it in the heap,
  timer* next = nullptr;      ///< the next beside it,
  timer* previous = nullptr;  ///< and the one before it, or above if it is the first
};

/// The timers of an engine, as a pairing heap. Workers that look for work call those that are due.
/// *Thread safety*: any thread, any member.
/// *Source*: Fredman, Sedgewick, Sleator, Tarjan 1986.
class timer_queue {
 public:
  static constexpr auto never = base::clock::time_point::max();

  /// *Returns*: whether it is the first one to expire now. *Cost*: constant.
  bool add(timer& t) noexcept {
    const std::lock_guard hold(mutex_);
    t.queued = true;
    t.child = t.next = t.previous = nullptr;
    first_ = merge(first_, &t);
    note_earliest();
    return first_ == &t;
  }
  /// It is not called after this returns, and no call is under way. *Cost*: logarithmic, amortised.
  void remove(timer& t) noexcept {
    const std::lock_guard hold(mutex_);
    if (t.queued) take_out(t);
    note_earliest();
  }
  /// When the first one expires. A hint: whoever adds one that is earlier wakes a worker that sleeps.
  base::clock::time_point earliest() const noexcept {
    return base::clock::time_point(base::clock::duration(earliest_.load(base::memory_order_relaxed)));
  }
  /// Calls those that are due.
  void call_due() noexcept {
    const std::lock_guard hold(mutex_);
    for (const auto now = base::clock::now(); first_ != nullptr && first_->when <= now;) {
      timer& t = *first_;
      take_out(t);
      t.expire(t);
    }
    note_earliest();
  }

 private:
  // The lock is held in all of these.
  void note_earliest() noexcept {
    const auto first = first_ == nullptr ? never : first_->when;
    // Relaxed: a fence follows where a sleeper must see it (engine::add_timer).
    earliest_.store(first.time_since_epoch().count(), base::memory_order_relaxed);
  }
  static timer* merge(timer* a, timer* b) noexcept {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    if (b->when < a->when) std::swap(a, b);
    b->next = a->child;
    if (b->next != nullptr) b->next->previous = b;
    b->previous = a;
    a->child = b;
    return a;
  }
  /// One heap of a row of heaps: in pairs, then from the last pair to the first.
  static timer* merge_all(timer* row) noexcept {
    timer* pairs = nullptr;
    while (row != nullptr) {
      timer* const a = row;
      timer* const b = a->next;
      row = b == nullptr ? nullptr : b->next;
      a->next = a->previous = nullptr;
      if (b != nullptr) b->next = b->previous = nullptr;
      timer* const pair = merge(a, b);
      pair->next = pairs;
      pairs = pair;
    }
    timer* all = nullptr;
    while (pairs != nullptr) {
      timer* const pair = std::exchange(pairs, pairs->next);
      pair->next = nullptr;
      all = merge(all, pair);
    }
    return all;
  }
  void take_out(timer& t) noexcept {
    t.queued = false;
    if (&t == first_) {
      first_ = merge_all(t.child);
      return;
    }
    (t.previous->child == &t ? t.previous->child : t.previous->next) = t.next;
    if (t.next != nullptr) t.next->previous = t.previous;
    first_ = merge(first_, merge_all(t.child));
  }

  base::spin_lock mutex_;
  timer* first_ = nullptr;
  base::atomic<base::clock::rep> earliest_{never.time_since_epoch().count()};
};

}  // namespace weft::inline WEFT_ABI::sched
