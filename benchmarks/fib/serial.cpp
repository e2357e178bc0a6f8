// SPDX-License-Identifier: BSL-1.0
// Fibonacci as the compiler likes it best: plain recursion, inlined as deep as it wants.
#include "config.hpp"

namespace weft_bench {
namespace {

long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

outcome run(int index, unsigned) {
  const problem& p = problems[index];
  const stopwatch clock;
  const long value = fib(opaque(long(p.n)));
  return plain_outcome(value, tasks(p), clock.seconds());
}

const registration entry("serial", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
