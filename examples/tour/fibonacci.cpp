// SPDX-License-Identifier: BSL-1.0
// First station: Fibonacci, ordered by data flow, and by fork and join.
#include "tour.hpp"

namespace tour {

namespace {

void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

/// Three tasks per call, and nothing waits: sum runs when a and b have been written.
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

/// One task per call; the body waits for it.
long join_fib(long n) {
  if (n < 2) return n;
  weft::shared<long> a = weft::fork(join_fib, n - 1);
  const long b = join_fib(n - 2);
  weft::sync();
  return a.get() + b;
}

/// Not inlined into itself: one call per call, as in the programs above.
[[gnu::noinline]] long serial_fib(long n) { return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2); }

}  // namespace

void fibonacci(size s, report& r) {
  const volatile long n = s == size::full ? 40 : 27;  // volatile, so that no compiler computes the result
  long expected = 0;
  long value = 0;
  const auto calls = 2 * std::uint64_t(serial_fib(n + 1)) - 1;
  const std::uint64_t inner = (calls - 1) / 2;
  const std::string name = "fib(" + std::to_string(n) + ") ";
  problem p;
  p.serial = [&] { expected = serial_fib(n); };
  p.equal = [&] {
    const bool equal = value == expected;
    value = 0;
    return equal;
  };

  p.name = name + "data-flow";
  p.tasks = calls + inner;
  p.parallel = [&](weft::runtime& rt) {
    weft::shared<long> result;
    rt.run(flow_fib, long(n), result);
    value = result.get();
  };
  visit(p, r);

  p.name = name + "fork-join";
  p.tasks = inner;
  p.parallel = [&](weft::runtime& rt) { value = rt.run(join_fib, long(n)); };
  visit(p, r);
}

}  // namespace tour
