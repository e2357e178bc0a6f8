// SPDX-License-Identifier: BSL-1.0
// The kernel with weft in four forms, and the tiles of the tuned one in a loop without weft.
#include "config.hpp"
#include "forms.hpp"

namespace weft_bench {
namespace {

/// Times `f`, which changes the grid, and `store`, which is not timed.
template <class F, class Store>
outcome timed(const problem& p, weft::runtime& rt, lk23::grid& g, F f, Store store) {
  rt.run([] {});
  const weft::counters before = rt.counters();
  const stopwatch clock;
  f();
  const double seconds = clock.seconds();
  const weft::counters after = rt.counters();
  store();
  outcome o = plain_outcome(g.digest(), points(p), seconds);
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return o;
}

outcome run_tasks(int index, unsigned workers) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  weft::runtime rt({.workers = workers});
  return timed(p, rt, g, [&] { lk23::by_data_flow(rt, g, p.sweeps, p.block); }, [] {});
}
outcome run_blocks(int index, unsigned workers) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  weft::runtime rt({.workers = workers});
  lk23::block_overlay o(g, p.block);
  return timed(p, rt, g, [&] { o.run(rt, p.sweeps); }, [&] { o.store(g); });
}
outcome run_frontiers(int index, unsigned workers) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  weft::runtime rt({.workers = workers});
  lk23::frontier_overlay o(g, p.block);
  return timed(p, rt, g, [&] { o.run(rt, p.sweeps); }, [&] { o.store(g); });
}
outcome run_chained(int index, unsigned workers) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  weft::runtime rt({.workers = workers});
  lk23::chained<> c(g);
  return timed(p, rt, g, [&] { c.run(rt, p.sweeps); }, [&] { c.store(g); });
}
outcome run_loop(int index, unsigned) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  lk23::chained<> c(g);
  const stopwatch clock;
  c.run_alone(p.sweeps);
  const double seconds = clock.seconds();
  c.store(g);
  return plain_outcome(g.digest(), points(p), seconds);
}

const registration tasks("weft-tasks", run_tasks, fits_all);
const registration with_blocks("weft-orwl", run_blocks, fits_all);
const registration with_frontiers("weft-orwl-frontiers", run_frontiers, fits_all);
const registration tuned("weft-tuned", run_chained, fits_all);
const registration loop("tuned-loop", run_loop, fits_one_worker);

}  // namespace
}  // namespace weft_bench
