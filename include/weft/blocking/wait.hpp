// SPDX-License-Identifier: BSL-1.0
// How a body waits for what another body, or the stop of its run, may end.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Waits for a signal of `a`, if `must_wait` still says so when the signal is ready to be set, or until the
/// run is stopped and `a.give_up` has set it. `how`: as in "calls sync()". *Throws*: std::bad_alloc,
/// std::system_error, before anything else. *Suspends*: yes; outside tasks the kernel thread blocks.
template <class Must>
void wait_abandonable(abandonable& a, const char* how, Must must_wait) {
  strand& s = current();
  a.reset();
  if (is_outside(s)) {
    a.waiter = nullptr;
    a.home = nullptr;
    if (must_wait()) a.block();
    return;
  }
  check_nothing_held(s, &current_task_name, how);
  context_slot& meanwhile = s.executor->home().contexts.take();
  a.waiter = &s;
  a.home = &s.executor->home();
  run_state& run = *s.run.load(base::memory_order_relaxed);  // constant while the task runs
  const bool abandoned = !run.waits.add(a);
  if (must_wait()) {
    if (abandoned) a.give_up(a);
    s.executor->await_signal(s, a, meanwhile);
  } else {
    s.executor->home().contexts.put(meanwhile);
  }
  run.waits.remove(a);
}

}  // namespace weft::inline WEFT_ABI::sched
