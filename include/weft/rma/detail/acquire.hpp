// SPDX-License-Identifier: BSL-1.0
// Executes the steps of a lock to their end.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/rma/words.hpp>

#include <sched.h>

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
  void wait() noexcept {
    const auto end = std::chrono::steady_clock::now() + time_;
    while (std::chrono::steady_clock::now() < end) ::sched_yield();
    time_ = std::min(2 * time_, most);
  }

 private:
  static constexpr std::chrono::microseconds most{1000};
  std::chrono::microseconds time_{1};
};

/// Executes steps until they are done. `patient`: with growing pauses after each failure.
template <class Steps, remote_words W>
void execute(Steps& steps, W& words, bool patient = false) {
  patience between;
  back_off after_failure;
  for (;;) switch (steps.step(words)) {
      case progress::more:
        break;
      case progress::wait:
        between.wait();
        break;
      case progress::retry:
        patient ? after_failure.wait() : between.wait();
        break;
      case progress::done:
        return;
    }
}

/// Executes steps until they are done, or fail for the first time. *Returns*: whether they are done.
template <class Steps, remote_words W>
bool try_execute(Steps& steps, W& words) {
  patience between;
  for (;;) switch (steps.step(words)) {
      case progress::more:
        break;
      case progress::wait:
        between.wait();
        break;
      case progress::retry:
        return false;
      case progress::done:
        return true;
    }
}

}  // namespace weft::inline WEFT_ABI::rma::detail
