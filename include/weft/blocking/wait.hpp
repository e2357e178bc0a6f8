// SPDX-License-Identifier: BSL-1.0
// How a body waits for what another body, or the stop of its run, may end.
#pragma once

#include <weft/sched/sync.hpp>
#include <weft/sched/timers.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What may end a wait besides its signal.
struct wait_limits {
  timer* expiry = nullptr;  ///< at a time; its function sets the signal, or leaves that to others
  bool stop = true;         ///< the stop of the run
};

/// Makes the calling body, or outside tasks the kernel thread, the one who waits for a signal until the
/// object ends. `a.give_up` sets the signal if the run is stopped meanwhile.
/// *Requires*: nobody else knows of the signal until this object exists; a body has one of these at a time.
class signal_wait {
 public:
  /// `how`: as in "calls sync()".
  /// *Throws*: std::bad_alloc, std::system_error; then nothing has happened.
  signal_wait(abandonable& a, const char* how, const wait_limits& limits = {});
  signal_wait(const signal_wait&) = delete;
  signal_wait& operator=(const signal_wait&) = delete;
  ~signal_wait();
  /// Waits until it is set.
  /// *Requires*: called at most once.
  /// *Suspends*: yes; outside tasks the kernel thread blocks.
  void wait() noexcept;

 private:
  abandonable& signal_;
  wait_limits limits_;
  const char* how_;
  run_state* run_ = nullptr;
  context_slot* meanwhile_ = nullptr;
  bool abandoned_ = false;
};

/// Waits for a signal of `a`, if `must_wait` still says so when the signal is ready to be set. *Throws*,
/// *Suspends*: as signal_wait.
template <class Must>
void wait_abandonable(abandonable& a, const char* how, Must must_wait) {
  signal_wait here(a, how);
  if (must_wait()) here.wait();
}

/// Bodies of the run of a running task wait no more for what others may do.
void end_waits_of_run(const strand& s) noexcept;

}  // namespace weft::inline WEFT_ABI::sched
