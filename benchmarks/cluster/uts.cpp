// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search (T1 or T3 of UTS) over the processes of a job: every node of the first levels is a
// task. usage: mpiexec -n P bench_cluster_uts [turns] [levels] [T1|T3]
#include "../uts/config.hpp"
#include "tree.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

template <>
inline constexpr bool weft::remote::travels_as_bytes<weft_bench::node> = true;

namespace {

using namespace weft_bench;
using sums = weft::reduce<long, std::plus<>>;

long serial(tree which, const node& n) {
  const int children = children_of(which, n);
  if (children == 0) return one_leaf + one_node;
  long c = one_node;
  for (int i = 0; i < children; ++i) c += serial(which, child_of(n, static_cast<unsigned>(i)));
  return c;
}

void visit(tree which, node n, int levels, sums c) {
  if (levels == 0) {
    c += serial(which, n);
    return;
  }
  const int children = children_of(which, n);
  c += children == 0 ? one_leaf + one_node : one_node;
  for (int i = 0; i < children; ++i)
    weft::fork(visit, which, child_of(n, static_cast<unsigned>(i)), levels - 1, c);
}

}  // namespace

int main(int argc, char** argv) {
  const int levels = argc > 2 ? std::atoi(argv[2]) : 5;
  const char* const name = argc > 3 ? argv[3] : "T1";
  const problem* const p = std::find_if(std::begin(problems), std::end(problems),
                                        [name](const problem& q) { return std::strcmp(q.name, name) == 0; });
  if (p == std::end(problems)) {
    std::fprintf(stderr, "usage: mpiexec -n P bench_cluster_uts [turns] [levels] [T1|T3]\n");
    return 2;
  }
  return time_search(argc, argv, p->which == t1 ? "uts T1" : "uts T3", [levels, p] {
    weft::shared<long> c(0L);
    weft::fork(visit, p->which, root_of(p->which), levels, weft::reduce(c, std::plus<>()));
    weft::sync();
    if (nodes_of(c.get()) != p->nodes) throw std::runtime_error("this is another tree");
    return c.get();
  });
}
