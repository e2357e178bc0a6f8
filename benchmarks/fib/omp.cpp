// SPDX-License-Identifier: BSL-1.0
// Fibonacci with OpenMP tasks; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"

namespace weft_bench {
namespace {

long fib(long n) {
  if (n < 2) return n;
  long a = 0;
  long b = 0;
#pragma omp task shared(a) firstprivate(n)
  a = fib(n - 1);
  b = fib(n - 2);
#pragma omp taskwait
  return a + b;
}

/// A task's `depend(out)` is met when its body ends, not when its children do: hence the taskwait in every
/// body.
void flow_fib(long n, long* r) {
  if (n < 2) {
    *r = n;
    return;
  }
  long a = 0;
  long b = 0;
#pragma omp task shared(a) firstprivate(n) depend(out : a)
  flow_fib(n - 1, &a);
#pragma omp task shared(b) firstprivate(n) depend(out : b)
  flow_fib(n - 2, &b);
#pragma omp task shared(a, b) firstprivate(r) depend(in : a, b)
  *r = a + b;
#pragma omp taskwait
}

long whole(const problem& p, int n, unsigned workers) {
  long value = 0;
#pragma omp parallel num_threads(workers)
#pragma omp single
  {
    if (is_fork_join(p))
      value = fib(n);
    else
      flow_fib(n, &value);
  }
  return value;
}

}  // namespace
}  // namespace weft_bench

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
  whole(p, warm_up_n, workers);
  const stopwatch clock;
  const long value = whole(p, p.n, workers);
  return plain_outcome(value, tasks(p), clock.seconds());
}

extern "C" bool weft_bench_module_fits(int index, unsigned) {
  return weft_bench::problems[index].for_slow_rivals;
}
