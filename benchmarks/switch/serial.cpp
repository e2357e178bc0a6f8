// SPDX-License-Identifier: BSL-1.0
// A plain call in place of a switch, and a child run in place: what the measuring itself costs.
#include "config.hpp"

namespace weft_bench {
namespace {

[[gnu::noinline]] void count(long& n) { n = n + 1; }

outcome run(int index, unsigned) {
  if (problems[index].what == change_stacks) {
    long n = 0;
    const stopwatch clock;
    for (long i = 0; i < switches; ++i) count(n);
    return plain_outcome(n, switches, clock.seconds());
  }
  resumptions all;
  while (!all.enough()) {
    exchange x;
    x.child();
    all.add(x, true, now());
  }
  return all.result();
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
