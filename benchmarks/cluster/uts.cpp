// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search over the processes of a job. usage: mpiexec -n P bench_cluster_uts [turns] [grain]
// [T1|T3]
// T1: every node of the first `grain` levels is a task. T3, where one subtree of the first 100 levels has
// half of all nodes: a task visits `grain` nodes, depth first, and forks two tasks for what it has found and
// not visited.
#include "../uts/config.hpp"
#include "tree.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

template <>
inline constexpr bool weft::remote::travels_as_bytes<weft_bench::node> = true;

namespace {

using namespace weft_bench;
using sums = weft::reduce<long, std::plus<>>;

long serial(const node& n) {
  const int children = children_of(t1, n);
  if (children == 0) return one_leaf + one_node;
  long c = one_node;
  for (int i = 0; i < children; ++i) c += serial(child_of(n, static_cast<unsigned>(i)));
  return c;
}

void visit(node n, int levels, sums c) {
  if (levels == 0) {
    c += serial(n);
    return;
  }
  const int children = children_of(t1, n);
  c += children == 0 ? one_leaf + one_node : one_node;
  for (int i = 0; i < children; ++i) weft::fork(visit, child_of(n, static_cast<unsigned>(i)), levels - 1, c);
}

void visit_some(std::vector<node> open, int grain, sums c) {
  for (int i = 0; i < grain && !open.empty(); ++i) {
    const node n = open.back();
    open.pop_back();
    const int children = children_of(t3, n);
    c += children == 0 ? one_leaf + one_node : one_node;
    for (int k = 0; k < children; ++k) open.push_back(child_of(n, static_cast<unsigned>(k)));
  }
  // Each gets every second one: the first ones are those with the largest subtrees.
  std::vector<node> half[2];
  for (std::size_t i = 0; i < open.size(); ++i) half[i % 2].push_back(open[i]);
  for (std::vector<node>& h : half)
    if (!h.empty()) weft::fork(visit_some, std::move(h), grain, c);
}

void search(tree which, int grain, sums c) {
  if (which == t1) return visit(root_of(t1), grain, c);
  visit_some({root_of(t3)}, grain, c);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const name = argc > 3 ? argv[3] : "T1";
  const problem* const p = std::find_if(std::begin(problems), std::end(problems),
                                        [name](const problem& q) { return std::strcmp(q.name, name) == 0; });
  const int grain = argc > 2 ? std::atoi(argv[2]) : std::strcmp(name, "T3") == 0 ? 5000 : 5;
  if (p == std::end(problems) || grain < 1) {
    std::fprintf(stderr, "usage: mpiexec -n P bench_cluster_uts [turns] [grain] [T1|T3]\n");
    return 2;
  }
  return time_search(argc, argv, p->which == t1 ? "uts T1" : "uts T3", [grain, p] {
    weft::shared<long> c(0L);
    weft::fork(search, p->which, grain, weft::reduce(c, std::plus<>()));
    weft::sync();
    if (nodes_of(c.get()) != p->nodes) throw std::runtime_error("this is another tree");
    return c.get();
  });
}
