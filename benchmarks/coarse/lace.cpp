// SPDX-License-Identifier: BSL-1.0
// The long tasks with Lace.
#include "config.hpp"

#include <lace.h>

VOID_TASK_2(lace_work, unsigned long long*, v, int, i) { *v = weft_bench::work(weft_bench::opaque(i)); }

VOID_TASK_2(lace_all, weft_bench::results*, r, int, n) {
  for (int i = 0; i < n; ++i) SPAWN(lace_work, &r->part[i], i);
  for (int i = 0; i < n; ++i) SYNC(lace_work);
}

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const int n = problems[index].tasks;
  lace_start(workers, 0);
  results r;
  const stopwatch clock;
  RUN(lace_all, &r, n);
  return results_outcome(r, n, clock.seconds());
}

const registration entry("lace", run, fits_all);

}  // namespace
}  // namespace weft_bench
