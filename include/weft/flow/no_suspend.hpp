// SPDX-License-Identifier: BSL-1.0
// A scope in which a task must not wait, since it holds something that belongs to its kernel thread.
#pragma once

#include <weft/sched/definitions.hpp>
#include <weft/sched/sync.hpp>

#include <source_location>

namespace weft::inline WEFT_ABI::this_task {

/// Says that the running task holds something that is tied to the kernel thread, a std::mutex as a rule,
/// until the end of the scope. Scopes nest.
/// *Effects*: in checked builds (WEFT_CHECKED) sync(), a nested run, a wait at an object of
/// <weft/threads.hpp> (for a mutex, semaphore or channel only if it has to wait), a fork that has to make
/// room first, or the end of the scope in another task's hands stop the program with a sentence that names
/// the task, the lock and the place of this scope. Outside tasks it has no effect.
/// In all builds: no fork runs tasks that the body has forked before, unless runtime_options::cap are
/// pending.
///
/// *Cost*: a few instructions.
///
/// *Thread safety*: each task its own.
///
/// *Example*: `const std::lock_guard hold(table); const weft::this_task::no_suspend mark("table");`
class [[maybe_unused]] no_suspend {
 public:
#if WEFT_CHECKED
  /// `name` must outlive the scope.
  [[nodiscard]] explicit no_suspend(const char* name,
                                    std::source_location where = std::source_location::current()) noexcept
      : held_{name, where, nullptr} {
    sched::strand& s = sched::current();
    if (is_outside(s)) return;
    strand_ = &s;
    ++s.no_suspends;
    held_.outer = s.holds;
    s.holds = &held_;
  }
  ~no_suspend() {
    if (strand_ == nullptr) return;
    sched::strand& s = sched::current();
    if (&s != strand_ || s.holds != &held_) {
      const char* const task = is_outside(s) ? nullptr : sched::current_task_name();
      base::fail(
          "the scope of '%s' (no_suspend at %s:%u) ends in task '%s', where it did not begin, or before one "
          "within it; release it in the task that has acquired it",
          held_.name, held_.where.file_name(), static_cast<unsigned>(held_.where.line()),
          task != nullptr ? task : "none");
    }
    s.holds = held_.outer;
    --s.no_suspends;
  }
#else
  /// The name is only used in checked builds.
  [[nodiscard]] explicit no_suspend(const char*) noexcept {
    sched::strand& s = sched::current();
    if (is_outside(s)) return;
    strand_ = &s;
    ++s.no_suspends;
  }
  ~no_suspend() {
    if (strand_ != nullptr) --strand_->no_suspends;
  }
#endif
  no_suspend(const no_suspend&) = delete;
  no_suspend& operator=(const no_suspend&) = delete;

 private:
#if WEFT_CHECKED
  sched::held_lock held_;
#endif
  sched::strand* strand_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::this_task
