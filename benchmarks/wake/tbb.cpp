// SPDX-License-Identifier: BSL-1.0
// Waking oneTBB's workers from inside, by task_group::run, and from outside, by task_arena::enqueue; and when
// idle.
#include "config.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>

namespace weft_bench {
namespace {

template <class post_function>
void one_trial(latencies& all, const post_function& post) {
  pause_for(sleep_before);
  std::atomic<bool> started = false;
  double woken = 0;
  const double posted = now();
  post([&] {
    woken = now();
    started.store(true, std::memory_order_release);  // pairs with the acquire below
  });
  while (!started.load(std::memory_order_acquire)) {
  }
  all.add(woken - posted);
}

outcome run(int index, unsigned workers) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  latencies all;
  switch (problems[index].what) {
    case from_fork:
      arena.execute([&] {
        tbb::task_group group;
        for (int i = 0; i < trials; ++i) one_trial(all, [&](const auto& f) { group.run(f); });
        group.wait();
      });
      break;
    case from_run:
      for (int i = 0; i < trials; ++i) one_trial(all, [&](const auto& f) { arena.enqueue(f); });
      break;
    case idle:
      arena.execute([] { tbb::task_group().run_and_wait([] {}); });
      return idle_outcome();
  }
  return all.median();
}

/// With one worker the waiting thread would be the one that should start the task.
bool fits(int, unsigned workers) { return workers > 1; }

const registration entry("tbb", run, fits);

}  // namespace
}  // namespace weft_bench
