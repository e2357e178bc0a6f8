// SPDX-License-Identifier: BSL-1.0
// The long tasks one after the other.
#include "config.hpp"

namespace weft_bench {
namespace {

outcome run(int index, unsigned) {
  const int n = problems[index].tasks;
  results r;
  const stopwatch clock;
  for (int i = 0; i < n; ++i) r.part[i] = work(opaque(i));
  return results_outcome(r, n, clock.seconds());
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
