// SPDX-License-Identifier: BSL-1.0
// The loops with OpenMP's dynamic schedule; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
#pragma omp parallel num_threads(workers)
  {
  }
  std::vector<unsigned> row = row_of(p);
  unsigned long sum = 0;
  const long n = p.iterations, each = grain(p);
  const stopwatch clock;
  if (p.what == shape::sum) {
#pragma omp parallel for num_threads(workers) schedule(dynamic, each) reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += addend(i);
  } else {
#pragma omp parallel for num_threads(workers) schedule(dynamic, each)
    for (long i = 0; i < n; ++i) row[std::size_t(i)] = iteration(p, i);
  }
  const double seconds = clock.seconds();
  return loop_outcome(p, row, sum, seconds);
}

extern "C" bool weft_bench_module_fits(int, unsigned) { return true; }
