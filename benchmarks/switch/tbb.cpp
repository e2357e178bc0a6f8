// SPDX-License-Identifier: BSL-1.0
// oneTBB: task_group::wait for a child that another worker runs.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

outcome run(int, unsigned workers) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  resumptions all;
  arena.execute([&] {
    while (!all.enough()) {
      exchange x;
      tbb::task_group group;
      group.run([&x] { x.child(); });
      const bool taken = x.taken();
      group.wait();
      all.add(x, taken, now());
    }
  });
  return all.result();
}

bool fits(int index, unsigned workers) { return problems[index].what == resume_waiting && workers > 1; }

const registration entry("tbb", run, fits);

}  // namespace
}  // namespace weft_bench
