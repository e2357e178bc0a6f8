// SPDX-License-Identifier: BSL-1.0
// The other translation unit that includes every header, and the one that is linted: it uses every verb.
#include "everything.hpp"

const void* version_in_second();
long fib_in_second(long n);

const void* version_in_second() { return weft::version_string; }

static void sum(weft::read<long> a, long b, weft::write<long> r) { r = *a + b; }

long fib_in_second(long n) {
  if (n < 2) return n;
  weft::shared<long> result;
  weft::shared<long> a = weft::fork({.name = "fib"}, fib_in_second, n - 1);
  const long b = fib_in_second(n - 2);
  weft::fork(sum, a, b, result);
  weft::fork([](long& r) { r += 0; }, weft::update(result));
  weft::sync();
  return result.get();
}
