// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with weft in fork-join form: one task per node.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <vector>

namespace weft_bench {
namespace {

/// Counts below `n` with room for `capacity` children on the stack: T3 is 1572 levels deep.
template <int capacity>
long forked(tree which, const node& n) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long part[capacity];
  for (int i = 0; i < children; ++i)
    weft::fork([which, &n, i, &mine = part[i]] { mine = forked<capacity>(which, child_of(n, unsigned(i))); });
  weft::sync();
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += part[i];
  return counts;
}

long whole(tree which) {
  const node root = root_of(which);
  if (which == t1) return forked<most_children>(which, root);
  std::vector<long> part(t3_root_children);
  for (int i = 0; i < t3_root_children; ++i)
    weft::fork([which, &root, i, &mine = part[i]] {
      mine = forked<t3_children>(which, child_of(root, unsigned(i)));
    });
  weft::sync();
  long counts = one_node;
  for (const long c : part) counts += c;
  return counts;
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  long counts = 0;
  outcome o = timed_run(rt, p.nodes, [&] { return counts; }, [&] { counts = whole(p.which); });
  return o;
}

const registration entry("weft", run, fits_all);

}  // namespace
}  // namespace weft_bench
