// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search (T1 of UTS) over the processes of a job: every node of the first levels is a task.
// usage: mpiexec -n P bench_cluster_uts [turns] [levels]
#include "../uts/config.hpp"
#include "tree.hpp"

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

}  // namespace

int main(int argc, char** argv) {
  const int levels = argc > 2 ? std::atoi(argv[2]) : 5;
  return time_search(argc, argv, "uts T1", [levels] {
    weft::shared<long> c(0L);
    weft::fork(visit, root_of(t1), levels, weft::reduce(c, std::plus<>()));
    weft::sync();
    if (nodes_of(c.get()) != 4130071) throw std::runtime_error("this is not T1");
    return c.get();
  });
}
