// SPDX-License-Identifier: BSL-1.0
// N-queens with Lace.
#include "config.hpp"

#include <lace.h>

using weft_bench::board;

TASK_2(long, lace_queens, board, b, int, levels) {
  using namespace weft_bench;
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    SPAWN(lace_queens, b.with(lowest(free)), levels - 1);
    ++k;
  }
  long counts = one_node;
  for (; k > 0; --k) counts += SYNC(lace_queens);
  return counts;
}

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lace_start(workers, 0);
  RUN(lace_queens, empty_board(8), no_cut_off);
  const stopwatch clock;
  const long counts = RUN(lace_queens, empty_board(p.n), p.fork_levels);
  return count_outcome(counts, clock.seconds());
}

const registration entry("lace", run, fits_all);

}  // namespace
}  // namespace weft_bench
