// SPDX-License-Identifier: BSL-1.0
// The long tasks with OpenMP; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const int n = problems[index].tasks;
#pragma omp parallel num_threads(workers)
  {
  }
  results r;
  const stopwatch clock;
#pragma omp parallel num_threads(workers)
#pragma omp single
  for (int i = 0; i < n; ++i) {
    unsigned long long* v = &r.part[i];
#pragma omp task firstprivate(v, i)
    *v = work(opaque(i));
  }
  return results_outcome(r, n, clock.seconds());
}

extern "C" bool weft_bench_module_fits(int, unsigned) { return true; }
