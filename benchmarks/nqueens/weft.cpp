// SPDX-License-Identifier: BSL-1.0
// N-queens with weft in fork-join form: one task per placement.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

namespace weft_bench {
namespace {

long forked(board b, int levels) {
  if (b.complete()) return one_solution + one_node;
  if (levels == 0) return search(b);
  long part[most_queens];
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    const board next = b.with(lowest(free));
    long& mine = part[k++];
    weft::fork([&mine, next, levels] { mine = forked(next, levels - 1); });
  }
  weft::sync();
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  return counts;
}

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  weft::runtime rt({.workers = workers});
  rt.run([] { forked(empty_board(8), no_cut_off); });
  long counts = 0;
  outcome o = timed_run(
      rt, 1, [&] { return counts; },
      [&] { counts = forked(empty_board(opaque(p.n)), opaque(p.fork_levels)); });
  o.tasks = nodes_of(counts);
  return o;
}

const registration entry("weft", run, fits_all);

}  // namespace
}  // namespace weft_bench
