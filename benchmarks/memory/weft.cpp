// SPDX-License-Identifier: BSL-1.0
// Prints the peak resident memory of a process that computes data-flow Fibonacci: usage: memory_weft [n]
// [workers]
#include "machine.hpp"

#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork(sum, a, b, r);
}

long serial_fib(long n) {
  long a = 0;
  long b = 1;
  for (long i = 0; i < n; ++i) {
    const long next = a + b;
    a = b;
    b = next;
  }
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  const long n = argc > 1 ? std::atol(argv[1]) : 42;
  const unsigned workers = argc > 2 ? unsigned(std::atoi(argv[2])) : 2;
  const double before = weft_bench::peak_resident_mb();
  weft::runtime rt({.workers = workers});
  weft::shared<long> r;
  rt.run(fib, n, r);
  const weft::counters c = rt.counters();
  const bool right = r.get() == serial_fib(n);
  std::printf(
      "fib(%ld) = %ld %s, %u workers, steals %llu, stacks %llu, deepest %llu bytes, start MB %.1f, peak MB "
      "%.1f\n",
      n, r.get(), right ? "right" : "WRONG", rt.workers(), static_cast<unsigned long long>(c.steals),
      static_cast<unsigned long long>(c.contexts), static_cast<unsigned long long>(c.stack_high_water),
      before, weft_bench::peak_resident_mb());
  return right ? 0 : 1;
}
