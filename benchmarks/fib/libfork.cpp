// SPDX-License-Identifier: BSL-1.0
// Fork-join Fibonacci with libfork.
#include "config.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

namespace weft_bench {
namespace {

constexpr auto fib = [](auto self, long n) -> lf::task<long> {
  if (n < 2) co_return n;
  long a = 0;
  long b = 0;
  co_await lf::fork(&a, self)(n - 1);
  co_await lf::call(&b, self)(n - 2);
  co_await lf::join;
  co_return a + b;
};

outcome run(int index, unsigned workers) {
  const problem& p = problems[index];
  lf::lazy_pool pool(workers);
  lf::sync_wait(pool, fib, long(warm_up_n));
  const stopwatch clock;
  const long value = lf::sync_wait(pool, fib, long(p.n));
  return plain_outcome(value, tasks(p), clock.seconds());
}

bool fits(int index, unsigned) { return is_fork_join(problems[index]); }

const registration entry("libfork", run, fits);

}  // namespace
}  // namespace weft_bench
