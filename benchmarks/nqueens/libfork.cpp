// SPDX-License-Identifier: BSL-1.0
// N-queens with libfork.
#include "config.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#include <array>

namespace weft_bench {
namespace {

constexpr auto forked = [](auto self, board b, int levels) -> lf::task<long> {
  if (b.complete()) co_return one_solution + one_node;
  if (levels == 0) co_return search(b);
  std::array<long, most_queens> part;
  int k = 0;
  for (unsigned free = b.free(); free != 0; free &= free - 1) {
    co_await lf::fork(&part[k], self)(b.with(lowest(free)), levels - 1);
    ++k;
  }
  co_await lf::join;
  long counts = one_node;
  for (int i = 0; i < k; ++i) counts += part[i];
  co_return counts;
};

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lf::lazy_pool pool(workers);
  lf::sync_wait(pool, forked, empty_board(8), int(no_cut_off));
  const stopwatch clock;
  const long counts = lf::sync_wait(pool, forked, empty_board(p.n), int(p.fork_levels));
  return count_outcome(counts, clock.seconds());
}

const registration entry("libfork", run, fits_all);

}  // namespace
}  // namespace weft_bench
