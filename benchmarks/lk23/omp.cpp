// SPDX-License-Identifier: BSL-1.0
// The kernel with OpenMP, by blocks: doacross loops for libgomp, tasks with dependences for libomp.
#include "config.hpp"

#include <vector>

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  const long b = p.block, n = (p.size + b - 1) / b, end = p.size + 1;
  const auto sweep = [&g, b, end](long i, long j) {
    lk23::plain_block(g, 1 + i * b, 1 + (i + 1) * b < end ? 1 + (i + 1) * b : end, 1 + j * b,
                      1 + (j + 1) * b < end ? 1 + (j + 1) * b : end);
  };
#pragma omp parallel num_threads(workers)
  {
  }
  const stopwatch clock;
#if defined(__clang__)
  std::vector<char> tokens(static_cast<std::size_t>((n + 2) * (n + 2)));
#pragma omp parallel num_threads(workers)
#pragma omp single
  for (long s = 0; s < p.sweeps; ++s)
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
        char* const t = &tokens[static_cast<std::size_t>((i + 1) * (n + 2) + j + 1)];
#pragma omp task firstprivate(i, j, t) depend(inout : t[0]) depend(in : t[-1], t[1], t[-n - 2], t[n + 2])
        sweep(i, j);
      }
#else
#pragma omp parallel for num_threads(workers) ordered(3) schedule(static, 1)
  for (long s = 0; s < p.sweeps; ++s)
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
#pragma omp ordered depend(sink : s, i - 1, j) depend(sink : s, i, j - 1) depend(sink : s - 1, i + 1, j) \
    depend(sink : s - 1, i, j + 1)
        sweep(i, j);
#pragma omp ordered depend(source)
      }
#endif
  const double seconds = clock.seconds();
  return plain_outcome(g.digest(), points(p), seconds);
}

extern "C" bool weft_bench_module_fits(int, unsigned) { return true; }
