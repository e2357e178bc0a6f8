// SPDX-License-Identifier: BSL-1.0
// The other translation unit: a runtime.
#include <weft/flow/runtime.hpp>

#include <cstdio>

long fib(long n);

int main() {
  weft::runtime rt({.workers = 3});
  std::printf("%ld\n", rt.run(fib, 20L));
}
