// SPDX-License-Identifier: BSL-1.0
// The kernel with weft in four forms, and the tiles of the tuned one in a loop without weft.
#include "config.hpp"
#include "forms.hpp"
#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

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

/// The tuned form and the loop in turns, on the same memory and the same processor, each time from the same
/// values and with the result compared: the median ratio is what weft adds to the tiles.
outcome run_pairs(int index, unsigned workers) {
  constexpr int pairs = 31;
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  stay_on_one_processor();
  weft::runtime rt({.workers = workers});
  lk23::chained<> c(g);
  const auto size = c.data().shape().vectors() * sizeof *c.data().values();
  const auto bytes = [&] {
    std::vector<char> copy(size);
    std::memcpy(copy.data(), c.data().values(), size);
    return copy;
  };
  const std::vector<char> before = bytes();
  c.run_alone(p.sweeps);
  const std::vector<char> right = bytes();
  const auto time = [&](bool tuned) {
    std::memcpy(c.data().values(), before.data(), size);
    const stopwatch clock;
    if (tuned)
      c.run(rt, p.sweeps);
    else
      c.run_alone(p.sweeps);
    const double seconds = clock.seconds();
    if (std::memcmp(c.data().values(), right.data(), size) != 0)
      throw std::runtime_error("the tuned form and its tiles in a loop differ");
    return seconds;
  };
  std::vector<double> ratios, seconds;
  for (int i = 0; i < pairs; ++i) {
    const bool first = i % 2 == 0;  // each of them, so that neither profits from its place
    const double a = time(first), b = time(!first);
    seconds.push_back(first ? a : b);
    ratios.push_back(first ? a / b : b / a);
  }
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + pairs / 2, v.end());
    return v[pairs / 2];
  };
  c.store(g);
  outcome o = plain_outcome(g.digest(), points(p), median(seconds));
  o.paired = median(ratios);
  return o;
}
bool fits_pairs(int index, unsigned workers) { return index == 0 && workers == 1; }  // blocks do not matter

const registration tasks("weft-tasks", run_tasks, fits_all);
const registration with_blocks("weft-orwl", run_blocks, fits_all);
const registration with_frontiers("weft-orwl-frontiers", run_frontiers, fits_all);
const registration tuned("weft-tuned", run_chained, fits_all);
const registration paired("weft-tuned-in-turns", run_pairs, fits_pairs);
const registration loop("tuned-loop", run_loop, fits_one_worker);

}  // namespace
}  // namespace weft_bench
