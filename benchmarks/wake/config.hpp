// SPDX-License-Identifier: BSL-1.0
// How long a sleeping worker takes to start new work, and what an idle runtime costs.
#pragma once

#include "rival.hpp"

#include <time.h>

namespace weft_bench {

static const char* const kernel_name = "wake";
static const char* const task_name = "wake-up";
static const char* const reference_name = "condition-variable";

enum form { from_fork, from_run, idle };

struct problem {
  const char* name;
  form what;
  int repetitions;
};

/// from-fork: a body forks a task while the other worker sleeps, and watches for it to start. from-run: a
/// thread outside hands in work while all workers sleep. The time is the median latency. idle: processor time
/// that a runtime without work uses in `idle_seconds`.
static const problem problems[] = {
    {"from-fork", from_fork, 5},
    {"from-run", from_run, 5},
    {"idle", idle, 3},
};

static const int trials = 50;
static const double sleep_before = 0.02;
static const double settle_before = 0.1;
static const double idle_seconds = 1.0;

inline void pause_for(double seconds) {
  timespec t;
  t.tv_sec = time_t(seconds);
  t.tv_nsec = long((seconds - double(t.tv_sec)) * 1e9);
  nanosleep(&t, 0);
}

inline double cpu_now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The latencies of `trials` wake-ups, sorted as they are added; the outcome is their median.
class latencies {
 public:
  latencies() : count_(0) {}
  void add(double seconds) {
    int at = count_++;
    for (; at > 0 && value_[at - 1] > seconds; --at) value_[at] = value_[at - 1];
    value_[at] = seconds;
  }
  outcome median() const { return plain_outcome(count_, 1, count_ == 0 ? 0 : value_[count_ / 2]); }

 private:
  int count_;
  double value_[trials];
};

/// What a process without work spends, once it has settled.
inline outcome idle_outcome() {
  pause_for(settle_before);
  const double before = cpu_now();
  pause_for(idle_seconds);
  return plain_outcome(1, 1, cpu_now() - before);
}

}  // namespace weft_bench
