// SPDX-License-Identifier: BSL-1.0
// The long tasks with weft, forked from one body, without and with a sync at its end.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

namespace weft_bench {
namespace {

outcome run_with(int index, unsigned workers, bool waits) {
  const int n = problems[index].tasks;
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  results r;
  return timed_run(
      rt, n, [&] { return r.sum(n); },
      [&] {
        for (int i = 0; i < n; ++i) weft::fork([&v = r.part[i], i] { v = work(opaque(i)); });
        if (waits) weft::sync();
      });
}

outcome run(int index, unsigned workers) { return run_with(index, workers, false); }
outcome run_waiting(int index, unsigned workers) { return run_with(index, workers, true); }

const registration entry("weft", run, fits_all);
const registration waiting("weft-sync", run_waiting, fits_all);

}  // namespace
}  // namespace weft_bench
