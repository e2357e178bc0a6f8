// SPDX-License-Identifier: BSL-1.0
// N-queens with Taskflow's task group.
#include "config.hpp"

#include <taskflow/taskflow.hpp>

namespace weft_bench {
namespace {

long forked(board b, int levels, tf::Executor& executor) {
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  tf::TaskGroup children = executor.task_group();
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    const board next = b.with(lowest(free));
    long& mine = part[k++];
    children.silent_async([&mine, next, levels, &executor] { mine = forked(next, levels - 1, executor); });
  }
  children.corun();
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  return counts;
}

long whole(int n, int levels, tf::Executor& executor) {
  return executor.async([n, levels, &executor] { return forked(empty_board(n), levels, executor); }).get();
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  tf::Executor executor(workers);
  whole(8, no_cut_off, executor);
  const stopwatch clock;
  const long counts = whole(p.n, p.fork_levels, executor);
  return count_outcome(counts, clock.seconds());
}

const registration entry("taskflow", run, fits_all);

}  // namespace
}  // namespace weft_bench
