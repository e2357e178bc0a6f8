// SPDX-License-Identifier: BSL-1.0
// The body that has an exclusive lock: for reports, and for what checked builds find.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/task/current.hpp>

namespace weft::inline WEFT_ABI::threads {

/// Who has an exclusive lock. Nobody may be known: the holder of a lock that is free, read by those who had
/// it last, is theirs. Relaxed throughout: who reads it for a report finds out whether everybody still waits,
/// and who looks for itself reads what it has written. Thread safety: any.
class holder {
 public:
  constexpr holder() noexcept = default;

  /// A lock that is handed over is at once that of the next body. Null: a kernel thread outside tasks.
  void set(const sched::strand* s) noexcept { who_.store(s, base::memory_order_relaxed); }
  void set_current() noexcept { set(&sched::current()); }
  /// For a signal that the holder will set (sched::signal::holder).
  const base::atomic<const sched::strand*>& who() const noexcept { return who_; }

  /// In checked builds, before a lock is given back: ends the program unless the calling body has it. Kernel
  /// threads outside tasks are one to the library, and not looked at; as in the next.
  void check_leaves([[maybe_unused]] const char* failure) noexcept {
#if WEFT_CHECKED
    [[maybe_unused]] const sched::races::unseen library;
    const sched::strand& s = sched::current();
    const sched::strand* const now = who_.load(base::memory_order_relaxed);
    if (!is_outside(s) && now != nullptr && now != &s) base::fail("%s", failure);
    set(nullptr);
#endif
  }
  /// In checked builds, when a lock is not free: ends the program if the calling body has it.
  void check_waits([[maybe_unused]] const char* failure) const noexcept {
#if WEFT_CHECKED
    const sched::strand& s = sched::current();
    if (!is_outside(s) && who_.load(base::memory_order_relaxed) == &s) base::fail("%s", failure);
#endif
  }

 private:
  base::atomic<const sched::strand*> who_{nullptr};
};

}  // namespace weft::inline WEFT_ABI::threads
