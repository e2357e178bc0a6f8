// SPDX-License-Identifier: BSL-1.0
// Empty tasks with oneTBB's task_group.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

void all_rounds(slots& s, int count) {
  for (int round = 0; round < count; ++round) {
    tbb::task_group group;
    for (int i = 0; i < batch; ++i) group.run([&v = s.value[i]] { v = v + 1; });
    group.wait();
  }
}

outcome run(int, unsigned workers) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  slots warm, s;
  arena.execute([&] { all_rounds(warm, 10); });
  const stopwatch clock;
  arena.execute([&] { all_rounds(s, rounds); });
  return slots_outcome(s, clock.seconds());
}

bool fits(int index, unsigned) { return problems[index].style == plain; }

const registration entry("tbb", run, fits);

}  // namespace
}  // namespace weft_bench
