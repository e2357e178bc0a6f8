// SPDX-License-Identifier: BSL-1.0
// Fork and join: a body forks, goes on, and waits for its children with sync.
//
// Prints:
//   sum of the first million squares = 333332833333500000

#include <weft/weft.hpp>

#include <cstdio>

static long squares(long from, long to) {
  if (to - from <= 1000) {
    long s = 0;
    for (long i = from; i < to; ++i) s += i * i;
    return s;
  }
  const long middle = from + (to - from) / 2;
  weft::shared<long> low = weft::fork(squares, from, middle);  // a result is a shared object
  const long high = squares(middle, to);
  weft::sync();  // now low has its value
  return low.get() + high;
}

int main() {
  weft::runtime rt;
  std::printf("sum of the first million squares = %ld\n", rt.run(squares, 0L, 1000000L));
}
