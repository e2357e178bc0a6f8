// SPDX-License-Identifier: BSL-1.0
// Sixteen workers on one processor against one: how much slower they are. Prints figures; asserts results,
// not times.
#include <weft/weft.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork([](long x, long y, long& sum) { sum = x + y; }, weft::read(a), weft::read(b), r);
}

void trees(weft::runtime& rt) {
  weft::shared<long> r;
  rt.run(fib, 32L, r);
  if (r.get() != 2178309) std::abort();
}

/// The task graph of a tiled Cholesky factorisation; a tile's kernel is a loop of fixed length.
void cholesky(weft::runtime& rt) {
  constexpr std::size_t tiles = 24;
  struct tile {
    unsigned long value = 1;
    void work(unsigned long a, unsigned long b) {
      for (int i = 0; i < 4000; ++i) value = (value ^ (value >> 29)) * 6364136223846793005u + a * 3 + b;
    }
  };
  std::vector<tile> m(tiles * tiles);
  const auto at = [&m](std::size_t i, std::size_t j) { return weft::borrow(m[i * tiles + j]); };
  rt.run([&] {
    for (std::size_t k = 0; k < tiles; ++k) {
      weft::fork([](tile& t) { t.work(1, 2); }, weft::update(at(k, k)));
      for (std::size_t i = k + 1; i < tiles; ++i)
        weft::fork([](const tile& d, tile& t) { t.work(d.value, 0); }, weft::read(at(k, k)),
                   weft::update(at(i, k)));
      for (std::size_t i = k + 1; i < tiles; ++i)
        for (std::size_t j = k + 1; j <= i; ++j)
          weft::fork([](const tile& a, const tile& b, tile& t) { t.work(a.value, b.value); },
                     weft::read(at(i, k)), weft::read(at(j, k)), weft::update(at(i, j)));
    }
  });
  static const unsigned long first = m.back().value;
  if (m.back().value != first) std::abort();
}

double median(unsigned workers, void (*program)(weft::runtime&)) {
  weft::runtime rt({.workers = workers});
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    program(rt);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[3];
}

}  // namespace

int main() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return 1;
  std::printf("ceiling crowded_fib %.3f\n", median(16, trees) / median(1, trees));
  std::printf("ceiling crowded_cholesky %.3f\n", median(16, cholesky) / median(1, cholesky));
}
