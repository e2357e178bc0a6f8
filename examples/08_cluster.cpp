// SPDX-License-Identifier: BSL-1.0
// One program on many machines: N-queens, whose tasks other processes steal. Run it by mpiexec; with more
// than one process it prints "13 queens: 73712 solutions; tasks went to other processes: yes"
#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <functional>

namespace {

/// The rows that have a queen, as what they attack in the next row: one bit for each column.
struct board {
  unsigned columns = 0, left = 0, right = 0;
  int rows_left = 0;
};

using solutions = weft::reduce<long, std::plus<>>;

long count(const board& b, unsigned all) {
  if (b.rows_left == 0) return 1;
  long n = 0;
  for (unsigned free = all & ~(b.columns | b.left | b.right); free != 0; free &= free - 1) {
    const unsigned queen = free & (0u - free);
    n += count({b.columns | queen, (b.left | queen) << 1, (b.right | queen) >> 1, b.rows_left - 1}, all);
  }
  return n;
}

/// A function, an aggregate, a number, and a right to contribute: all of it can go to another process.
void place(board b, unsigned all, solutions found) {
  if (b.rows_left < 10) {  // about ten milliseconds of work at most
    found += count(b, all);
    return;
  }
  for (unsigned free = all & ~(b.columns | b.left | b.right); free != 0; free &= free - 1) {
    const unsigned queen = free & (0u - free);
    weft::fork(place,
               board{b.columns | queen, (b.left | queen) << 1, (b.right | queen) >> 1, b.rows_left - 1}, all,
               found);
  }
}

}  // namespace

int main(int argc, char** argv) {
  weft::cluster c(argc, argv);
  constexpr int queens = 13;
  const long n = c.run([] {  // process 0 calls this; all get what it returns
    weft::shared<long> found(0L);
    weft::fork(place, board{.rows_left = queens}, (1u << queens) - 1, weft::reduce(found, std::plus<>()));
    weft::sync();
    return found.get();
  });
  if (c.rank() == 0)
    std::printf("%d queens: %ld solutions; tasks went to other processes: %s\n", queens, n,
                c.counters().closures_sent > 0 ? "yes" : "no");
  return n == 73712 ? 0 : 1;
}
