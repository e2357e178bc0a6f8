// SPDX-License-Identifier: BSL-1.0
// Empty tasks with Taskflow's task group.
#include "config.hpp"

#include <taskflow/taskflow.hpp>

namespace weft_bench {
namespace {

void all_rounds(slots& s, int count, tf::Executor& executor) {
  for (int round = 0; round < count; ++round) {
    tf::TaskGroup group = executor.task_group();
    for (int i = 0; i < batch; ++i) group.silent_async([&v = s.value[i]] { v = v + 1; });
    group.corun();
  }
}

outcome run(int, unsigned workers) {
  tf::Executor executor(workers);
  slots warm, s;
  executor.async([&] { all_rounds(warm, 10, executor); }).get();
  const stopwatch clock;
  executor.async([&] { all_rounds(s, rounds, executor); }).get();
  return slots_outcome(s, clock.seconds());
}

bool fits(int index, unsigned) { return problems[index].style == plain; }

const registration entry("taskflow", run, fits);

}  // namespace
}  // namespace weft_bench
