// SPDX-License-Identifier: BSL-1.0
// What a running task can find out about itself and its run.
#pragma once

#include <weft/sched/definitions.hpp>
#include <weft/sched/sync.hpp>
#include <weft/task/run_state.hpp>

#include <stop_token>

namespace weft::inline WEFT_ABI::this_task {

namespace detail {
inline sched::run_state& run() noexcept {
  sched::strand& s = sched::current();
  if (is_outside(s)) sched::fail_outside("weft::this_task was asked outside a task");
  return *s.run.load(base::memory_order_relaxed);  // constant while the strand executes a task
}
}  // namespace detail

/// The stop token of this task's run; long bodies should poll it.
/// *Requires*: called in a task.
inline std::stop_token stop_token() noexcept { return detail::run().source.get_token(); }

/// Stops this task's run: tasks that have not started are dropped, and run throws weft::cancelled.
/// *Requires*: called in a task.
inline void request_stop() noexcept { detail::run().source.request_stop(); }

/// The name given to this task by its options, or "task". Safe in a signal handler. Null outside tasks.
inline const char* name() noexcept { return sched::current_task_name(); }

}  // namespace weft::inline WEFT_ABI::this_task
