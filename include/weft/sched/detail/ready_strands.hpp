// SPDX-License-Identifier: BSL-1.0
// Strands that can begin or go on, the more urgent ones first, linked through the strands themselves.
#pragma once

#include <weft/task/strand.hpp>

#include <limits>
#include <mutex>

namespace weft::inline WEFT_ABI::sched {

/// A queue of queues: one for each priority of those that are in it, in which they stand in the order of
/// arrival. The first strand of each holds its end, and the first of the next lower priority.
/// *Thread safety*: any thread, any member.
class ready_strands {
 public:
  /// *Cost*: a step for each higher priority.
  void push_back(strand& s) noexcept {
    const std::lock_guard hold(mutex_);
    strand** link = &first_;
    while (*link != nullptr && (*link)->priority > s.priority) link = &(*link)->lower;
    s.next = nullptr;
    if (*link != nullptr && (*link)->priority == s.priority) {
      strand*& last = (*link)->last_of_equals;
      last->next = &s;
      last = &s;
    } else {
      s.lower = std::exchange(*link, &s);
      s.last_of_equals = &s;
    }
    // Relaxed: empty() is only a hint, and those who must not miss the strand lock or fence.
    size_.store(size_.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);
    note_most_urgent_();
  }
  /// *Returns*: the most urgent strand, of several the one that came first; null if there is none.
  strand* pop_front() noexcept {
    if (empty()) return nullptr;
    const std::lock_guard hold(mutex_);
    strand* const s = first_;
    if (s == nullptr) return nullptr;
    take_first_(first_);
    shrink_();
    return s;
  }
  /// Takes out a strand that was put in here, unless it has begun. *Returns*: whether it was still there.
  /// *Cost*: a step for each higher priority, and for each strand before it.
  bool remove_unbegun(strand& s) noexcept {
    const std::lock_guard hold(mutex_);
    if (s.status.load(base::memory_order_relaxed) != strand_status::idle)
      return false;  // as when it was put in
    strand** link = &first_;
    while (*link != nullptr && (*link)->priority > s.priority) link = &(*link)->lower;
    strand* before = nullptr;
    for (strand* at = *link; at != &s; before = at, at = at->next)
      if (at == nullptr || at->priority != s.priority) return false;
    if (before != nullptr) {
      before->next = s.next;
      if ((*link)->last_of_equals == &s) (*link)->last_of_equals = before;
    } else {
      take_first_(*link);
    }
    s.next = nullptr;
    shrink_();
    return true;
  }
  /// Calls `see` on each strand. *Returns*: false if it is locked for so many rounds of waiting.
  template <class See>
  bool each(unsigned rounds, See see) {
    if (empty()) return true;
    if (!base::lock_within(mutex_, rounds)) return false;
    for (strand* level = first_; level != nullptr; level = level->lower)
      for (strand* s = level; s != nullptr; s = s->next) see(*s);
    mutex_.unlock();
    return true;
  }
  /// Whether there is a strand of a higher priority. A hint.
  bool has_above(int priority) const noexcept {
    return most_urgent_.load(base::memory_order_relaxed) > priority;
  }
  /// A hint, exact when nobody changes it.
  bool empty() const noexcept { return size_.load(base::memory_order_relaxed) == 0; }

 private:
  static constexpr int none = std::numeric_limits<int>::min();

  /// Takes the first strand of a priority out. *Requires*: the lock is held, here and below.
  static void take_first_(strand*& link) noexcept {
    strand& s = *link;
    link = s.lower;
    if (strand* const equal = std::exchange(s.next, nullptr)) {
      equal->lower = s.lower;
      equal->last_of_equals = s.last_of_equals;
      link = equal;
    }
  }
  void shrink_() noexcept {
    size_.store(size_.load(base::memory_order_relaxed) - 1, base::memory_order_relaxed);  // see push_back
    note_most_urgent_();
  }
  void note_most_urgent_() noexcept {
    // Relaxed: a hint; stored only where it changes, since all workers look at it.
    const int now = first_ == nullptr ? none : first_->priority;
    if (most_urgent_.load(base::memory_order_relaxed) != now)
      most_urgent_.store(now, base::memory_order_relaxed);
  }

  base::spin_lock mutex_;
  strand* first_ = nullptr;
  base::atomic<std::size_t> size_{0};
  base::atomic<int> most_urgent_{none};
};

}  // namespace weft::inline WEFT_ABI::sched
