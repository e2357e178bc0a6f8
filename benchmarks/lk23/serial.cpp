// SPDX-License-Identifier: BSL-1.0
// The plain loops over sweeps, rows and columns.
#include "config.hpp"

namespace weft_bench {
namespace {

outcome run(int index, unsigned) {
  const problem& p = problems[index];
  lk23::grid g = make_grid(p);
  const stopwatch clock;
  lk23::plain(g, opaque(p.sweeps));
  const double seconds = clock.seconds();
  return plain_outcome(g.digest(), points(p), seconds);
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
