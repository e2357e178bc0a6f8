// SPDX-License-Identifier: BSL-1.0
// Ordered locks: what a turn costs alone, what handing it to somebody else costs, and what an overlay's order
// costs.
#pragma once

#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "orwl";
static const char* const task_name = "turn or request";
static const char* const reference_name = "serial";

enum kind { alone, hand_off, schedule };

struct problem {
  const char* name;
  kind what;
  long long count;
  int repetitions;
};

static const problem problems[] = {
    {"uncontended", alone, 5000000, 5},
    {"hand-off", hand_off, 200000, 5},
    {"schedule", schedule, 1000000, 5},
};

inline bool is(int index, kind k) { return problems[index].what == k; }
inline bool fits_hand_off(int index, unsigned) { return is(index, hand_off); }

}  // namespace weft_bench
