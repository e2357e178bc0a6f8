// SPDX-License-Identifier: BSL-1.0
// Few long tasks forked by one body: the owner's long bodies must not starve the thieves.
#pragma once

#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "coarse";
static const char* const task_name = "task";
static const char* const reference_name = "serial";

struct problem {
  const char* name;
  int tasks;
  int repetitions;
};

static const problem problems[] = {
    {"64x10ms", 64, 5},
};

static const int most_tasks = 64;

/// Steps that depend on one another and have no closed form (a compiler finds the one of a linear
/// congruence): about 10 ms at 3 to 4 GHz.
static const long steps = 6000000;

inline unsigned long long work(int seed) {
  unsigned long long x = (unsigned long long)(seed) + 1;
  for (long i = 0; i < steps; ++i) x = (x ^ (x >> 29)) * 6364136223846793005ull;
  return x;
}

struct results {
  unsigned long long part[most_tasks];

  long long sum(int tasks) const {
    unsigned long long s = 0;
    for (int i = 0; i < tasks; ++i) s = s * 31 + part[i];
    return static_cast<long long>(s >> 1);
  }
};

inline outcome results_outcome(const results& r, int tasks, double seconds) {
  return plain_outcome(r.sum(tasks), tasks, seconds);
}

}  // namespace weft_bench
