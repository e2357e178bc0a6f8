// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with oneTBB's task_group.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <vector>

namespace weft_bench {
namespace {

template <int capacity>
long forked(tree which, const node& n) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long part[capacity];
  tbb::task_group group;
  for (int i = 0; i < children; ++i)
    group.run([which, &n, i, &mine = part[i]] { mine = forked<capacity>(which, child_of(n, unsigned(i))); });
  group.wait();
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += part[i];
  return counts;
}

long whole(tree which) {
  const node root = root_of(which);
  if (which == t1) return forked<most_children>(which, root);
  std::vector<long> part(t3_root_children);
  tbb::task_group group;
  for (int i = 0; i < t3_root_children; ++i)
    group.run([which, &root, i, &mine = part[i]] {
      mine = forked<t3_children>(which, child_of(root, unsigned(i)));
    });
  group.wait();
  long counts = one_node;
  for (const long c : part) counts += c;
  return counts;
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  arena.execute([] { return 0; });
  const stopwatch clock;
  const long counts = arena.execute([&] { return whole(p.which); });
  return count_outcome(counts, clock.seconds());
}

const registration entry("tbb", run, fits_all);

}  // namespace
}  // namespace weft_bench
