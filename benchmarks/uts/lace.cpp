// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with Lace.
#include "config.hpp"

#include <lace.h>

using weft_bench::node;

TASK_3(long, lace_count, int, which, const node*, parent, int, number) {
  using namespace weft_bench;
  const node n = number < 0 ? *parent : child_of(*parent, unsigned(number));
  const int children = children_of(tree(which), n);
  if (children == 0) return one_leaf + one_node;
  for (int i = 0; i < children; ++i) SPAWN(lace_count, which, &n, i);
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += SYNC(lace_count);
  return counts;
}

namespace weft_bench {
namespace {

/// A deque that holds all pending nodes of the deepest path.
const int deque_size = 1000000;

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lace_set_stacksize(64 * 1024 * 1024);
  lace_start(workers, deque_size);
  const node root = root_of(p.which);
  const stopwatch clock;
  const long counts = RUN(lace_count, int(p.which), &root, -1);
  return count_outcome(counts, clock.seconds());
}

const registration entry("lace", run, fits_all);

}  // namespace
}  // namespace weft_bench
