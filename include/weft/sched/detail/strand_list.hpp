// SPDX-License-Identifier: BSL-1.0
// Lists of strands, linked through the strands themselves, so that adding one can never fail.
#pragma once

#include <weft/task/strand.hpp>

#include <mutex>

namespace weft::inline WEFT_ABI::sched {

/// A doubly linked list of strands; a strand is in at most one list.
/// *Thread safety*: any thread, any member.
class strand_list {
 public:
  void push_back(strand& s) noexcept {
    const std::lock_guard hold(mutex_);
    s.next = nullptr;
    s.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &s;
    last_ = &s;
    // Relaxed: empty() is only a hint, and those who must not miss the strand lock or fence.
    size_.store(size_.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);
  }
  /// *Requires*: the strand is in this list.
  void remove(strand& s) noexcept {
    const std::lock_guard hold(mutex_);
    unlink(s);
  }
  /// *Returns*: the strand that is in the list for the longest time, null if there is none.
  strand* pop_front() noexcept {
    if (empty()) return nullptr;
    const std::lock_guard hold(mutex_);
    strand* s = first_;
    if (s != nullptr) unlink(*s);
    return s;
  }
  /// Calls `visit` on each strand until it returns something other than null, and returns that.
  /// *Requires*: `visit` does not touch this list.
  template <class Visit>
  strand* first_of(Visit visit) {
    if (empty()) return nullptr;
    const std::lock_guard hold(mutex_);
    for (strand* s = first_; s != nullptr; s = s->next)
      if (strand* found = visit(*s)) return found;
    return nullptr;
  }
  /// Calls `see` on each strand. *Returns*: false if the list is locked for so many rounds of waiting.
  template <class See>
  bool each(unsigned rounds, See see) {
    if (empty()) return true;
    if (!base::lock_within(mutex_, rounds)) return false;
    for (strand* s = first_; s != nullptr; s = s->next) see(*s);
    mutex_.unlock();
    return true;
  }
  /// A hint, exact when nobody changes the list.
  bool empty() const noexcept { return size_.load(base::memory_order_relaxed) == 0; }

 private:
  void unlink(strand& s) noexcept {
    (s.previous != nullptr ? s.previous->next : first_) = s.next;
    (s.next != nullptr ? s.next->previous : last_) = s.previous;
    s.next = s.previous = nullptr;
    size_.store(size_.load(base::memory_order_relaxed) - 1, base::memory_order_relaxed);  // see push_back
  }

  base::spin_lock mutex_;
  strand* first_ = nullptr;
  strand* last_ = nullptr;
  base::atomic<std::size_t> size_{0};
};

}  // namespace weft::inline WEFT_ABI::sched
