// SPDX-License-Identifier: BSL-1.0
// The cost of one task that does next to nothing: how many, in what pieces, and how they are verified.
#pragma once

#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "spawn";
static const char* const task_name = "task";
static const char* const reference_name = "serial";

enum form { plain, data_flow };

struct problem {
  const char* name;
  form style;  ///< plain: fork and wait; data_flow: each task updates one declared object
  int repetitions;
};

static const problem problems[] = {
    {"fork-join", plain, 5},
    {"data-flow", data_flow, 5},
};

/// One body forks `batch` tasks and waits, `rounds` times. Task number i of a batch increments slot number i.
static const int batch = 1000;
static const int rounds = 2000;

struct slots {
  long value[batch];

  slots() {
    for (int i = 0; i < batch; ++i) value[i] = 0;
  }
  long sum() const {
    long s = 0;
    for (int i = 0; i < batch; ++i) s += value[i];
    return s;
  }
};

inline outcome slots_outcome(const slots& s, double seconds) {
  return plain_outcome(s.sum(), static_cast<long long>(batch) * rounds, seconds);
}

}  // namespace weft_bench
