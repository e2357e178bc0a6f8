// SPDX-License-Identifier: BSL-1.0
// N-queens over the processes of a job: every placement in the first four rows is a task.
// usage: mpiexec -n P bench_cluster_queens [turns] [n]
#include "../nqueens/config.hpp"
#include "tree.hpp"

namespace {

using namespace weft_bench;
using counts = weft::reduce<long, std::plus<>>;

void place(board b, int levels, counts c) {
  if (levels == 0 || b.complete()) {
    c += search(b);
    return;
  }
  c += one_node;
  for (unsigned free = b.free(); free != 0; free &= free - 1)
    weft::fork(place, b.with(lowest(free)), levels - 1, c);
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 2 ? std::atoi(argv[2]) : 15;
  return time_search(argc, argv, "queens", [n] {
    weft::shared<long> c(0L);
    weft::fork(place, empty_board(n), 4, weft::reduce(c, std::plus<>()));
    weft::sync();
    return c.get();
  });
}
