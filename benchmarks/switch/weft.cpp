// SPDX-License-Identifier: BSL-1.0
// weft's switch between two contexts, and its sync on a child that a thief has taken.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/context/fiber.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

namespace weft_bench {
namespace {

struct two_contexts {
  weft::context::fiber* outer;
  weft::context::fiber* inner;
  long count;
};

void count_and_return(void* argument) noexcept {
  two_contexts& both = *static_cast<two_contexts*>(argument);
  for (;;) {
    ++both.count;
    weft::context::fiber::switch_to(*both.inner, *both.outer);
  }
}

outcome run_switches() {
  weft::context::set_sticky_float_flags();  // a switch between contexts whose flags differ measures something
                                            // else
  weft::context::fiber outer;
  two_contexts both = {&outer, nullptr, 0};
  weft::context::fiber inner(weft::context::stack(std::size_t{1} << 16), count_and_return, &both);
  both.inner = &inner;
  weft::context::fiber::switch_to(outer, inner);
  both.count = 0;
  const stopwatch clock;
  for (long i = 0; i < switches / 2; ++i) weft::context::fiber::switch_to(outer, inner);
  return plain_outcome(2 * both.count, switches, clock.seconds());
}

outcome run_resumptions(unsigned workers) {
  weft::runtime rt({.workers = workers});
  resumptions all;
  const weft::counters before = rt.counters();
  rt.run([&] {
    while (!all.enough()) {
      const pid_t here = gettid();  // a system call: the answer is not kept in a register across sync
      exchange x;
      weft::fork([&x] { x.child(); });
      const bool taken = x.taken();
      weft::sync();
      const double resumed = now();
      // A suspended body is continued by the worker that has finished the child.
      all.add(x, taken && gettid() != here, resumed);
    }
  });
  const weft::counters after = rt.counters();
  outcome o = all.result();
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return o;
}

outcome run(int index, unsigned workers) {
  return problems[index].what == change_stacks ? run_switches() : run_resumptions(workers);
}

/// One worker switches; a second one is needed to run the child elsewhere.
bool fits(int index, unsigned workers) { return (problems[index].what == change_stacks) == (workers == 1); }

const registration entry("weft", run, fits);

}  // namespace
}  // namespace weft_bench
