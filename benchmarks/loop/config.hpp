// SPDX-License-Identifier: BSL-1.0
// Loops whose iterations are short: of one length, of lengths that grow, and a sum.
#pragma once

#include "rival.hpp"

#include <cstddef>
#include <vector>

namespace weft_bench {

static const char* const kernel_name = "loop";
static const char* const task_name = "iteration";
static const char* const reference_name = "serial";

enum class shape { uniform, skewed, sum };

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
};

/// Steps that depend on one another and have no closed form.
inline unsigned steps_of(unsigned long x, long steps) {
  for (long k = 0; k < steps; ++k) x = (x ^ (x >> 29)) * 6364136223846793005ul;
  return static_cast<unsigned>(x >> 40);
}
/// Iteration i of the first two: some 8 steps each, or 0 to 200.
inline unsigned iteration(const problem& p, long i) {
  return steps_of(static_cast<unsigned long>(i) + 1, p.what == shape::uniform ? 8 : i * 200 / p.iterations);
}
/// What iteration i adds to the sum.
inline unsigned long addend(long i) { return static_cast<unsigned long>(i) * 2654435761ul >> 7 & 1023; }

/// Iterations that a worker runs before it looks at others, for all rivals alike: about a microsecond.
inline long grain(const problem& p) {
  return p.what == shape::uniform ? 100 : p.what == shape::skewed ? 10 : 1000;
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
