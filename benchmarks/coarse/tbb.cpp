// SPDX-License-Identifier: BSL-1.0
// The long tasks with oneTBB's task_group.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const int n = problems[index].tasks;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  arena.execute([] { return 0; });
  results r;
  const stopwatch clock;
  arena.execute([&] {
    tbb::task_group group;
    for (int i = 0; i < n; ++i) group.run([&v = r.part[i], i] { v = work(opaque(i)); });
    group.wait();
  });
  return results_outcome(r, n, clock.seconds());
}

const registration entry("tbb", run, fits_all);

}  // namespace
}  // namespace weft_bench
