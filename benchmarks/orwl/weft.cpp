// SPDX-License-Identifier: BSL-1.0
// The turns with an iterative handle, with two bodies that wait for each other, and with an overlay of two
// tasks.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <deque>

namespace weft_bench {
namespace {

namespace orwl = weft::orwl;

bool fits_handles(int index, unsigned workers) {
  return is(index, hand_off) || (is(index, alone) && workers == 1);
}
bool fits_overlay(int index, unsigned workers) {
  return is(index, hand_off) || (is(index, schedule) && workers == 1);
}

/// `bodies` of them take turns at one location.
outcome run_handles(int index, unsigned workers) {
  const long long n = problems[index].count, bodies = is(index, alone) ? 1 : 2;
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  orwl::location<long long> value(0LL);
  std::deque<orwl::iterative_handle<long long>> handles(static_cast<std::size_t>(bodies));
  for (auto& h : handles) h.request_write(value);
  const outcome o = timed_run(
      rt, n, [&] { return value.get(); },
      [&] {
        for (auto& h : handles)
          weft::fork([&h, turns = n / bodies] {
            for (long long k = 0; k < turns; ++k) {
              orwl::section turn(h);
              ++turn.write();
            }
            h.cancel();
          });
      });
  return o;
}

/// Two tasks that write one location; or tasks on a ring, whose order alone is looked for.
outcome run_overlay(int index, unsigned workers) {
  const long long n = problems[index].count;
  if (is(index, schedule)) {
    std::deque<orwl::location<int>> ring(static_cast<std::size_t>(n / 4));
    orwl::overlay o;
    const std::size_t m = ring.size();
    for (std::size_t i = 0; i < m; ++i)
      o.task([](int&, const int&, const int&, const int&) {}, orwl::write(ring[i]),
             orwl::read(ring[(i + 1) % m]), orwl::read(ring[(i + m - 1) % m]),
             orwl::read(ring[(i + 500) % m]));
    const stopwatch clock;
    o.schedule();
    return plain_outcome(4 * static_cast<long long>(o.tasks()), n, clock.seconds());
  }
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  orwl::location<long long> value(0LL);
  orwl::overlay o;
  for (int i = 0; i < 2; ++i) o.task([](long long& v) { ++v; }, orwl::write(value));
  o.schedule();
  const weft::counters before = rt.counters();
  const stopwatch clock;
  o.run(rt, static_cast<std::uint64_t>(n / 2));
  outcome out = plain_outcome(value.get(), n, clock.seconds());
  const weft::counters after = rt.counters();
  out.steals = static_cast<long long>(after.steals - before.steals);
  out.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return out;
}

const registration handles("weft-handles", run_handles, fits_handles);
const registration overlay("weft-overlay", run_overlay, fits_overlay);

}  // namespace
}  // namespace weft_bench
