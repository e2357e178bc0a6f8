// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with Taskflow's task group.
#include "config.hpp"

#include <taskflow/taskflow.hpp>

#include <vector>

namespace weft_bench {
namespace {

template <int capacity>
long forked(tree which, const node& n, tf::Executor& executor) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long part[capacity];
  tf::TaskGroup group = executor.task_group();
  for (int i = 0; i < children; ++i)
    group.silent_async([which, &n, i, &mine = part[i], &executor] {
      mine = forked<capacity>(which, child_of(n, unsigned(i)), executor);
    });
  group.corun();
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += part[i];
  return counts;
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  tf::Executor executor(workers);
  executor.async([] {}).get();
  const stopwatch clock;
  const long counts =
      executor.async([&] { return forked<most_children>(p.which, root_of(p.which), executor); }).get();
  return count_outcome(counts, clock.seconds());
}

/// T3 nests 1572 waits, and each may run other tasks on top: not within a thread's stack.
bool fits(int index, unsigned) { return problems[index].which == t1; }

const registration entry("taskflow", run, fits);

}  // namespace
}  // namespace weft_bench
