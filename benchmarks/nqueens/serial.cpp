// SPDX-License-Identifier: BSL-1.0
// N-queens serially, and the forking program with plain calls in place of forks.
#include "config.hpp"

namespace weft_bench {
namespace {

outcome run(int index, unsigned) {
  const problem& p = problems[index];
  const stopwatch clock;
  const long counts = search(empty_board(opaque(p.n)));
  return count_outcome(counts, clock.seconds());
}

/// What a forking program costs before any fork: results of the children are kept and summed afterwards.
long called(board b, int levels) {
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    part[k] = called(b.with(lowest(free)), levels - 1);
    ++k;
  }
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  return counts;
}

outcome run_called(int index, unsigned) {
  const problem& p = problems[index];
  const stopwatch clock;
  const long counts = called(empty_board(opaque(p.n)), opaque(p.fork_levels));
  return count_outcome(counts, clock.seconds());
}

const registration entry("serial", run, fits_one_worker);
const registration calls("serial-with-parts", run_called, fits_one_worker);

}  // namespace
}  // namespace weft_bench
