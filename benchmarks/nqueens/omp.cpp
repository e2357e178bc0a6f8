// SPDX-License-Identifier: BSL-1.0
// N-queens with OpenMP tasks; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"

namespace weft_bench {
namespace {

long forked(board b, int levels) {
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    const board next = b.with(lowest(free));
    long* mine = &part[k++];
#pragma omp task firstprivate(mine, next, levels)
    *mine = forked(next, levels - 1);
  }
#pragma omp taskwait
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  return counts;
}

long whole(int n, int levels, unsigned workers) {
  long counts = 0;
#pragma omp parallel num_threads(workers)
#pragma omp single
  counts = forked(empty_board(n), levels);
  return counts;
}

}  // namespace
}  // namespace weft_bench

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
  whole(8, no_cut_off, workers);
  const stopwatch clock;
  const long counts = whole(p.n, p.fork_levels, workers);
  return count_outcome(counts, clock.seconds());
}

/// 27 million tasks of a few nanoseconds take these runtimes ten seconds and more.
extern "C" bool weft_bench_module_fits(int index, unsigned) {
  using namespace weft_bench;
  return problems[index].fork_levels != no_cut_off || problems[index].n <= 12;
}
