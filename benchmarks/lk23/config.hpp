// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23: sweeps over a grid in place, with blocks of several sizes; and one in the tuned form.
#pragma once

#include "grid.hpp"
#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "lk23";
static const char* const task_name = "point and sweep";
static const char* const reference_name = "serial";

struct problem {
  const char* name;
  long size;
  long sweeps;
  long block;
  int repetitions;
};

static const problem problems[] = {
    {"2048^2,blocks=64^2", 2048, 16, 64, 3},
    {"2048^2,blocks=16^2", 2048, 16, 16, 3},
};

inline lk23::grid make_grid(const problem& p) {
  lk23::grid g(p.size, p.size);
  g.fill(23);
  return g;
}

inline long long points(const problem& p) { return p.size * p.size * p.sweeps; }

}  // namespace weft_bench
