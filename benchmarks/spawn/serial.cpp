// SPDX-License-Identifier: BSL-1.0
// An empty task as a plain call.
#include "config.hpp"

namespace weft_bench {
namespace {

[[gnu::noinline]] void touch(long& v) { v = v + 1; }

outcome run(int, unsigned) {
  slots s;
  const stopwatch clock;
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < batch; ++i) touch(s.value[i]);
  return slots_outcome(s, clock.seconds());
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
