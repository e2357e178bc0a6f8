// SPDX-License-Identifier: BSL-1.0
// Fork-join Fibonacci with oneTBB's task_group.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

long fib(long n) {
  if (n < 2) return n;
  long a = 0;
  tbb::task_group children;
  children.run([&a, n] { a = fib(n - 1); });
  const long b = fib(n - 2);
  children.wait();
  return a + b;
}

/// In the data-flow problems it is the fork-join program that weft's data-flow is held against.
outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  long value = arena.execute([] { return fib(warm_up_n); });
  const stopwatch clock;
  value = arena.execute([&] { return fib(p.n); });
  return plain_outcome(value, tasks(p), clock.seconds());
}

const registration entry("tbb-fork-join", run, fits_all);

}  // namespace
}  // namespace weft_bench
