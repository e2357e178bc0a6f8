// SPDX-License-Identifier: BSL-1.0
// Empty tasks with libfork.
#include "config.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

namespace weft_bench {
namespace {

constexpr auto touch = [](auto, long* v) -> lf::task<void> {
  *v = *v + 1;
  co_return;
};

constexpr auto all_rounds = [](auto, slots* s, int count) -> lf::task<void> {
  for (int round = 0; round < count; ++round) {
    for (int i = 0; i < batch; ++i) co_await lf::fork(touch)(&s->value[i]);
    co_await lf::join;
  }
};

outcome run(int, unsigned workers) {
  lf::lazy_pool pool(workers);
  slots warm, s;
  lf::sync_wait(pool, all_rounds, &warm, 10);
  const stopwatch clock;
  lf::sync_wait(pool, all_rounds, &s, int(rounds));
  return slots_outcome(s, clock.seconds());
}

bool fits(int index, unsigned) { return problems[index].style == plain; }

const registration entry("libfork", run, fits);

}  // namespace
}  // namespace weft_bench
