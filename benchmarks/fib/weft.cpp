// SPDX-License-Identifier: BSL-1.0
// Fibonacci with weft: data-flow and fork-join, and the serial function of the same file that they are held
// against.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

namespace weft_bench {
namespace {

void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

void flow_fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(flow_fib, n - 1, a);
  weft::fork(flow_fib, n - 2, b);
  weft::fork(sum, a, b, r);
}

long join_fib(long n) {
  if (n < 2) return n;
  weft::shared<long> a = weft::fork(join_fib, n - 1);
  const long b = join_fib(n - 2);
  weft::sync();
  return a.get() + b;
}

long join_fib_ref(long n) {
  if (n < 2) return n;
  long a = 0;
  weft::fork([&a, n] { a = join_fib_ref(n - 1); });
  const long b = join_fib_ref(n - 2);
  weft::sync();
  return a + b;
}

[[gnu::noinline]] long noinline_fib(long n) { return n < 2 ? n : noinline_fib(n - 1) + noinline_fib(n - 2); }

outcome run_with(weft::runtime_options options, const problem& p) {
  weft::runtime rt(options);
  const auto join = [&](auto fib) {
    rt.run(fib, long(warm_up_n));
    long value = 0;
    return timed_run(rt, tasks(p), [&] { return value; }, [&] { value = fib(opaque(long(p.n))); });
  };
  if (p.style == fork_join) return join([](long n) { return join_fib(n); });
  if (p.style == fork_join_ref) return join([](long n) { return join_fib_ref(n); });
  weft::shared<long> r;
  rt.run(flow_fib, long(warm_up_n), r);
  return timed_run(rt, tasks(p), [&] { return r.get(); }, flow_fib, opaque(long(p.n)), r);
}

outcome run(int index, unsigned workers) { return run_with({.workers = workers}, problems[index]); }

outcome run_deferred(int index, unsigned workers) {
  return run_with({.workers = workers, .inlining = false}, problems[index]);
}

outcome run_noinline(int index, unsigned) {
  const problem& p = problems[index];
  const stopwatch clock;
  const long value = noinline_fib(opaque(long(p.n)));
  return plain_outcome(value, tasks(p), clock.seconds());
}

/// Nothing inlined: the price of a closure that is really stored, found and run later.
bool fits_deferred(int index, unsigned) { return problems[index].n <= 38; }

const registration same_file("serial-noinline", run_noinline, fits_one_worker);
const registration entry("weft", run, fits_all);
const registration deferred("weft-deferred", run_deferred, fits_deferred);

}  // namespace
}  // namespace weft_bench
