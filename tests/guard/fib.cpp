// SPDX-License-Identifier: BSL-1.0
// The program whose instructions are counted: data-flow Fibonacci, three tasks per call, one worker.
// usage: guard_fib <n> inlined|deferred      prints fib(n)
#include <weft/weft.hpp>

#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

static void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork(sum, a, b, r);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long n = std::atol(argv[1]);
  const bool inlined = std::strcmp(argv[2], "inlined") == 0;
  weft::runtime rt({.workers = 1, .inlining = inlined, .spin = std::chrono::microseconds(0)});
  weft::shared<long> r;
  rt.run([&] {
    CALLGRIND_TOGGLE_COLLECT;
    weft::fork(fib, n, r);
    weft::sync();
    CALLGRIND_TOGGLE_COLLECT;
  });
  std::printf("%ld\n", r.get());
}
