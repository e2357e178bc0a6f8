// SPDX-License-Identifier: BSL-1.0
// Fork-join Fibonacci with Lace.
#include "config.hpp"

#include <lace.h>

TASK_1(long, lace_fib, int, n) {
  if (n < 2) return n;
  SPAWN(lace_fib, n - 1);
  const long b = CALL(lace_fib, n - 2);
  const long a = SYNC(lace_fib);
  return a + b;
}

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lace_start(workers, 0);
  RUN(lace_fib, warm_up_n);
  const stopwatch clock;
  const long value = RUN(lace_fib, p.n);
  return plain_outcome(value, tasks(p), clock.seconds());
}

bool fits(int index, unsigned) { return is_fork_join(problems[index]); }

const registration entry("lace", run, fits);

}  // namespace
}  // namespace weft_bench
