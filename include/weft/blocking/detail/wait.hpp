// SPDX-License-Identifier: BSL-1.0
// How a body leaves its stack until a signal is set.
#pragma once

#include <weft/blocking/wait.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION signal_wait::signal_wait(abandonable& a, const char* how, const wait_limits& limits)
    : signal_(a), limits_(limits), how_(how) {
  strand& s = current();
  a.reset();
  a.waiter = nullptr;
  a.home = nullptr;
  if (is_outside(s)) return;
  check_nothing_held(s, &current_task_name, how);
  meanwhile_ = &s.executor->take_context();
  a.waiter = &s;
  a.home = &s.executor->home();
  if (limits_.expiry != nullptr) a.home->add_timer(*limits_.expiry);
  run_ = s.run.load(base::memory_order_relaxed);  // constant while the task runs
  if (limits_.stop) abandoned_ = engine::begin_stoppable(s, a);
}

WEFT_FUNCTION signal_wait::~signal_wait() {
  if (run_ == nullptr) return;
  if (meanwhile_ != nullptr) current().executor->put_context(*meanwhile_);
  if (limits_.expiry != nullptr) signal_.home->timers.remove(*limits_.expiry);
  if (limits_.stop) signal_.home->end_stoppable(*signal_.waiter);
}

WEFT_FUNCTION void signal_wait::wait() noexcept {
  if (run_ == nullptr) {
    check_may_block(current(), how_);
    if (limits_.expiry != nullptr && !signal_.block_until(limits_.expiry->when))
      limits_.expiry->expire(*limits_.expiry);
    return signal_.block();
  }
  if (abandoned_) signal_.give_up(signal_);
  strand& s = *signal_.waiter;
  s.executor->await_signal(s, signal_, *std::exchange(meanwhile_, nullptr));
}

WEFT_FUNCTION void end_waits_of_run(const strand& s) noexcept {
  s.executor->home().end_waits(*s.run.load(base::memory_order_relaxed));  // constant while the task runs
}

}  // namespace weft::inline WEFT_ABI::sched
