// SPDX-License-Identifier: BSL-1.0
// What one timed run of one rival yields, and the stopwatch for it (plain enough for a C++98 rival).
#pragma once

#include <time.h>

namespace weft_bench {

/// Result of one run. Plain data: it crosses a pipe, and the border of a module built by another compiler.
struct outcome {
  long long value;  ///< compared with the reference's value before the time counts
  long long
      tasks;  ///< what a run is divided by: tasks (or nodes, calls, switches) by the kernel's own formula
  double seconds;    ///< time of the kernel alone: starting the runtime and warming it up are outside
  long long steals;  ///< -1: this runtime does not say
  long long sleeps;  ///< -1: this runtime does not say
  double peak_mb;    ///< peak resident memory of the process that ran it; set by whoever started that process
  double paired;     ///< median ratio of two forms that took turns in this process; 0: there was one form
};

/// Makes an outcome of a runtime that counts neither steals nor sleeps.
inline outcome plain_outcome(long long value, long long tasks, double seconds) {
  const outcome o = {value, tasks, seconds, -1, -1, 0.0, 0.0};
  return o;
}

/// Monotonic time in seconds.
inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Starts at construction; seconds() may be read several times.
class stopwatch {
 public:
  stopwatch() : start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  double start_;
};

/// Stops the optimiser from knowing a value (so that a constant argument is not evaluated while compiling).
template <class T>
inline T opaque(T v) {
  volatile T hidden = v;
  return hidden;
}

}  // namespace weft_bench
