// SPDX-License-Identifier: BSL-1.0
// Data flow: tasks are ordered by what they read and write, and nothing waits.
//
// Prints:
//   fib(25) = 75025

#include <weft/weft.hpp>

#include <cstdio>

static void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

static void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;    // live until the three tasks below have ended
  weft::fork(fib, n - 1, a);  // may run at the same time as the next one
  weft::fork(fib, n - 2, b);
  weft::fork(sum, a, b, r);  // runs when a and b have been written; the right to write r is delegated
}

int main() {
  weft::runtime rt;  // as many workers as this process may use processors
  weft::shared<long> r;
  rt.run(fib, 25L, r);
  std::printf("fib(25) = %ld\n", r.get());
}
