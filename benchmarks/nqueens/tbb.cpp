// SPDX-License-Identifier: BSL-1.0
// N-queens with oneTBB's task_group.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

long forked(board b, int levels) {
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  tbb::task_group children;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    const board next = b.with(lowest(free));
    long& mine = part[k++];
    children.run([&mine, next, levels] { mine = forked(next, levels - 1); });
  }
  children.wait();
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  return counts;
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  arena.execute([] { forked(empty_board(8), no_cut_off); });
  const stopwatch clock;
  const long counts = arena.execute([&] { return forked(empty_board(p.n), p.fork_levels); });
  return count_outcome(counts, clock.seconds());
}

const registration entry("tbb", run, fits_all);

}  // namespace
}  // namespace weft_bench
