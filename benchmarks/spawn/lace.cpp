// SPDX-License-Identifier: BSL-1.0
// Empty tasks with Lace.
#include "config.hpp"

#include <lace.h>

VOID_TASK_1(lace_touch, long*, v) { *v = *v + 1; }

VOID_TASK_2(lace_rounds, weft_bench::slots*, s, int, count) {
  using namespace weft_bench;
  for (int round = 0; round < count; ++round) {
    for (int i = 0; i < batch; ++i) SPAWN(lace_touch, &s->value[i]);
    for (int i = 0; i < batch; ++i) SYNC(lace_touch);
  }
}

namespace weft_bench {
namespace {

outcome run(int, unsigned workers) {
  lace_start(workers, 0);
  slots warm, s;
  RUN(lace_rounds, &warm, 10);
  const stopwatch clock;
  RUN(lace_rounds, &s, int(rounds));
  return slots_outcome(s, clock.seconds());
}

bool fits(int index, unsigned) { return problems[index].style == plain; }

const registration entry("lace", run, fits);

}  // namespace
}  // namespace weft_bench
