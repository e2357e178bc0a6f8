// SPDX-License-Identifier: BSL-1.0
// Fork-join Fibonacci with Taskflow's task group.
#include "config.hpp"

#include <taskflow/taskflow.hpp>

namespace weft_bench {
namespace {

long fib(long n, tf::Executor& executor) {
  if (n < 2) return n;
  long a = 0;
  tf::TaskGroup children = executor.task_group();
  children.silent_async([n, &a, &executor] { a = fib(n - 1, executor); });
  const long b = fib(n - 2, executor);
  children.corun();
  return a + b;
}

long whole(long n, tf::Executor& executor) {
  return executor.async([n, &executor] { return fib(n, executor); }).get();
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  tf::Executor executor(workers);
  whole(warm_up_n, executor);
  const stopwatch clock;
  const long value = whole(p.n, executor);
  return plain_outcome(value, tasks(p), clock.seconds());
}

bool fits(int index, unsigned) { return is_fork_join(problems[index]); }

const registration entry("taskflow", run, fits);

}  // namespace
}  // namespace weft_bench
