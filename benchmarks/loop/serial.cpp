// SPDX-License-Identifier: BSL-1.0
// The loops as they are.
#include "config.hpp"

namespace weft_bench {
namespace {

outcome run(int index, unsigned) {
  const problem& p = problems[index];
  const long n = opaque(p.iterations);
  std::vector<unsigned> row = row_of(p);
  unsigned long sum = 0;
  const stopwatch clock;
  if (p.what == shape::sum)
    for (long i = 0; i < n; ++i) sum += addend(i);
  else
    for (long i = 0; i < n; ++i) row[std::size_t(i)] = iteration(p, i);
  return loop_outcome(p, row, sum, clock.seconds());
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
