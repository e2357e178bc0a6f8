// SPDX-License-Identifier: BSL-1.0
// The graphs with counters by hand and tasks of oneTBB, which a task_group runs.
#include "counters.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace weft_bench {
namespace {

template <class graph>
class grouped {
 public:
  explicit grouped(graph& g) : graph_(g) {}
  void run() {
    for (const int task : graph_.start()) hand_on(task);
    group_.wait();
  }

 private:
  void hand_on(int task) {
    group_.run([this, task] { run_along(graph_, task, [this](int ready) { hand_on(ready); }); });
  }

  graph& graph_;
  tbb::task_group group_;
};

outcome run(int index, unsigned workers) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  return counted_outcome(problems[index], [&](auto& g, long) {
    return arena.execute([&] {
      const stopwatch clock;
      grouped(g).run();
      return clock.seconds();
    });
  });
}

const registration entry("tbb-counters", run, fits_counters);

}  // namespace
}  // namespace weft_bench
