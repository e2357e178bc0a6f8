// SPDX-License-Identifier: BSL-1.0
// A translation unit that includes no more than it uses: forks, and no runtime. With narrow_second.cpp it
// makes a program, in which each header must bring the definitions of what it declares.
#include <weft/flow/fork.hpp>
#include <weft/flow/shared.hpp>

long fib(long n);

long fib(long n) {
  if (n < 2) return n;
  weft::shared<long> a, b;
  weft::fork([](long& r, long m) { r = fib(m); }, weft::write(a), n - 1);
  weft::fork([](long& r, long m) { r = fib(m); }, weft::write(b), n - 2);
  weft::sync();
  return a.get() + b.get();
}
