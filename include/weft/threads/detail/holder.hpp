// SPDX-License-Identifier: BSL-1.0
// The body that has an exclusive lock: for reports, and for what checked builds find.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/task/current.hpp>

namespace weft::inline WEFT_ABI::threads {

/// Who has an exclusive lock. Meaningful while somebody has it: of a free lock it may be the last one.
/// Relaxed throughout: a report checks that all of a cycle still wait, and a body that looks for itself reads
/// its own stores. *Thread safety*: any.
class holder {
 public:
  constexpr holder() noexcept = default;

  /// A lock that is handed over is at once that of the next body. Null: a kernel thread outside tasks.
  void set(const sched::strand* s) noexcept { who_.store(s, base::memory_order_relaxed); }
  void set_current() noexcept { set(&sched::current()); }
  /// For a signal that the holder will set (sched::signal::holder).
  const base::atomic<const sched::strand*>& who() const noexcept { return who_; }

  /// Before a lock is given back. *Returns*: false if another body has it: in checked builds only, and kernel
  /// threads outside tasks, which are one to the library, are not looked at; as in the next.
  bool leave() noexcept {
#if WEFT_CHECKED
    [[maybe_unused]] const sched::races::unseen library;
    const sched::strand& s = sched::current();
    const sched::strand* const now = who_.load(base::memory_order_relaxed);
    if (!is_outside(s) && now != nullptr && now != &s) return false;
    set(nullptr);
#endif
    return true;
  }
  /// When a lock is not free. *Returns*: whether the calling body has it.
  bool is_current() const noexcept {
#if WEFT_CHECKED
    const sched::strand& s = sched::current();
    return !is_outside(s) && who_.load(base::memory_order_relaxed) == &s;
#else
    return false;
#endif
  }

 private:
  base::atomic<const sched::strand*> who_{nullptr};
};

}  // namespace weft::inline WEFT_ABI::threads
