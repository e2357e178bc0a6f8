// SPDX-License-Identifier: BSL-1.0
// The long tasks with Taskflow's task group.
#include "config.hpp"

#include <taskflow/taskflow.hpp>

namespace weft_bench {
namespace {

outcome run(int index, unsigned workers) {
  const int n = problems[index].tasks;
  tf::Executor executor(workers);
  executor.async([] {}).get();
  results r;
  const stopwatch clock;
  executor
      .async([&] {
        tf::TaskGroup group = executor.task_group();
        for (int i = 0; i < n; ++i) group.silent_async([&v = r.part[i], i] { v = work(opaque(i)); });
        group.corun();
      })
      .get();
  return results_outcome(r, n, clock.seconds());
}

const registration entry("taskflow", run, fits_all);

}  // namespace
}  // namespace weft_bench
