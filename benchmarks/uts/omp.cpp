// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search with OpenMP tasks; built once per compiler, each with its own OpenMP runtime.
#include "config.hpp"

#include <vector>

namespace weft_bench {
namespace {

template <int capacity>
long forked(tree which, const node& n) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long part[capacity];
  const node* parent = &n;
  for (int i = 0; i < children; ++i) {
    long* mine = &part[i];
#pragma omp task firstprivate(which, parent, i, mine)
    *mine = forked<capacity>(which, child_of(*parent, unsigned(i)));
  }
#pragma omp taskwait
  long counts = one_node;
  for (int i = 0; i < children; ++i) counts += part[i];
  return counts;
}

long below_root(tree which) {
  const node root = root_of(which);
  if (which == t1) return forked<most_children>(which, root);
  std::vector<long> part(t3_root_children);
  const node* parent = &root;
  for (int i = 0; i < t3_root_children; ++i) {
    long* mine = &part[i];
#pragma omp task firstprivate(which, parent, i, mine)
    *mine = forked<t3_children>(which, child_of(*parent, unsigned(i)));
  }
#pragma omp taskwait
  long counts = one_node;
  for (const long c : part) counts += c;
  return counts;
}

}  // namespace
}  // namespace weft_bench

extern "C" weft_bench::outcome weft_bench_module_run(int index, unsigned workers) {
  using namespace weft_bench;
  const problem& p = problems[index];
#pragma omp parallel num_threads(workers)
  {
  }
  long counts = 0;
  const stopwatch clock;
#pragma omp parallel num_threads(workers)
#pragma omp single
  counts = below_root(p.which);
  return count_outcome(counts, clock.seconds());
}

extern "C" bool weft_bench_module_fits(int, unsigned) { return true; }
