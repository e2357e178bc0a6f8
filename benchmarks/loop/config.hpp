// SPDX-License-Identifier: BSL-1.0
// Loops whose iterations are short: of one length, of lengths that grow, and a sum; and a body that gives
// parts of such a loop away.
#pragma once

#include "rival.hpp"

#include <cstddef>
#include <vector>

namespace weft_bench {

static const char* const kernel_name = "loop";
static const char* const task_name = "iteration";
static const char* const reference_name = "serial";

enum class shape { uniform, skewed, sum, body };

struct problem {
  const char* name;
  long iterations;
  shape what;
  int repetitions;
};

static const problem problems[] = {
    {"uniform-10^7", 10000000, shape::uniform, 5},
    {"skewed-10^6", 1000000, shape::skewed, 5},
    {"sum-10^8", 100000000, shape::sum, 5},
    {"body-100ms", 10000000, shape::body, 5},
};

/// Steps that depend on one another and have no closed form.
inline unsigned steps_of(unsigned long x, long steps) {
  for (long k = 0; k < steps; ++k) x = (x ^ (x >> 29)) * 6364136223846793005ul;
  return static_cast<unsigned>(x >> 40);
}
/// Iteration i of those that are no sum: 0 to 200 steps, 8, or so many that all take some 100 ms.
inline unsigned iteration(const problem& p, long i) {
  const long steps = p.what == shape::skewed ? i * 200 / p.iterations : p.what == shape::body ? 14 : 8;
  return steps_of(static_cast<unsigned long>(i) + 1, steps);
}
/// What iteration i adds to the sum.
inline unsigned long addend(long i) { return static_cast<unsigned long>(i) * 2654435761ul >> 7 & 1023; }

/// Iterations that a worker runs before it looks at others, for all rivals alike: about a microsecond.
inline long grain(const problem& p) {
  return p.what == shape::sum ? 1000 : p.what == shape::skewed ? 10 : 100;
}

/// What a loop has left, in short.
inline outcome loop_outcome(const problem& p, const std::vector<unsigned>& row, unsigned long sum,
                            double seconds) {
  for (const unsigned v : row) sum = sum * 31 + v;
  return plain_outcome(static_cast<long long>(sum >> 1), p.iterations, seconds);
}
inline std::vector<unsigned> row_of(const problem& p) {
  return std::vector<unsigned>(p.what == shape::sum ? 0 : static_cast<std::size_t>(p.iterations), 1);
}

}  // namespace weft_bench
