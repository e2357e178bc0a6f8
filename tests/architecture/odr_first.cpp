// SPDX-License-Identifier: BSL-1.0
// One of two translation units that include every header; they link, and share one definition of everything.
#include "everything.hpp"
#include "support/catch.hpp"

const void* version_in_second();
long fib_in_second(long n);

namespace {
long fib(long n) {
  if (n < 2) return n;
  weft::shared<long> a = weft::fork(fib_in_second, n - 1);
  const long b = fib(n - 2);
  weft::sync();
  return a.get() + b;
}
}  // namespace

TEST_CASE("two translation units share one library") {
  CHECK(version_in_second() == weft::version_string);
  weft::runtime rt({.workers = 2});
  CHECK(rt.run(fib, 15L) == 610);
}
