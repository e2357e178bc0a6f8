// SPDX-License-Identifier: BSL-1.0
// Bodies that sleep without keeping their worker.
#pragma once

#include <weft/threads/detail/waiters.hpp>

namespace weft::inline WEFT_ABI::this_task {

/// Suspends the running body for so long at least; outside tasks, blocks the kernel thread. *Throws*:
/// weft::cancelled if the run is stopped meanwhile; std::bad_alloc, std::system_error. *Suspends*: yes.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& time) {
  [[maybe_unused]] const sched::races::unseen library;
  threads::waiter_list nobody;
  threads::waiter w;
  threads::wait_at(nobody, w, {"a time", "sleeps"}, threads::after(time), [] { return true; });
}

/// The same, until then at least.
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& time) {
  threads::until_time(time, [](threads::deadline d) {
    sleep_for(d.at - base::clock::now());
    return false;
  });
}

}  // namespace weft::inline WEFT_ABI::this_task
