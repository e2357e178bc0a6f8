// SPDX-License-Identifier: BSL-1.0
// Executes the steps of a lock to their end.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/rma/words.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace weft::inline WEFT_ABI::rma::detail {

/// Waits a moment, in a loop: first the processor, then other processes get it.
class patience {
 public:
  void wait() noexcept {
    if (turns_ == 64) {  // who waits for hours stays here
      ::sched_yield();
    } else {
      ++turns_;
      base::pause();
    }
  }

 private:
  int turns_ = 0;
};

/// Time to wait before another try: a microsecond, then twice as long, to a millisecond at most.
/// *Source*: Christgau, Schnor 2016, section 6.1, which has no bound.
class back_off {
 public:
  /// `limit`: the wait ends then at the latest.
  void wait(
      std::chrono::steady_clock::time_point limit = std::chrono::steady_clock::time_point::max()) noexcept {
    const auto end =
        std::min<std::chrono::steady_clock::time_point>(std::chrono::steady_clock::now() + time_, limit);
    while (std::chrono::steady_clock::now() < end) ::sched_yield();
    time_ = std::min(2 * time_, most);
  }

 private:
  static constexpr std::chrono::microseconds most{1000};
  std::chrono::microseconds time_{1};
};

/// Executes steps that have not gone on at once, until they are done. *Returns*: these. By value, so that
/// those of a lock that is free stay in registers.
template <class Steps, remote_words W>
WEFT_NOINLINE Steps execute_waiting(Steps steps, W& words, bool patient, progress now) {
  patience between;
  back_off after_failure;
  for (; now != progress::done; now = steps.step(words))
    if (now == progress::retry && patient)
      after_failure.wait();
    else if (now != progress::more)
      between.wait();
  return steps;
}
/// Executes steps until they are done. `patient`: with growing pauses after each failure.
template <class Steps, remote_words W>
void execute(Steps& steps, W& words, bool patient = false) {
  progress now;
  do now = steps.step(words);
  while (now == progress::more);
  if (now != progress::done) [[unlikely]]
    steps = execute_waiting(steps, words, patient, now);
}

/// Executes steps until they are done, or fail for the first time. *Returns*: whether they are done.
template <class Steps, remote_words W>
bool try_execute(Steps& steps, W& words) {
  patience between;
  for (;;) {
    const progress now = steps.step(words);
    if (now == progress::done || now == progress::retry) return now == progress::done;
    if (now == progress::wait) [[unlikely]]
      between.wait();
  }
}

}  // namespace weft::inline WEFT_ABI::rma::detail
