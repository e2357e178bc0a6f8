// SPDX-License-Identifier: BSL-1.0
// A loop of equal tasks of some microseconds in all processes of a cluster, against a runtime with one
// worker; and Fibonacci numbers. usage: mpiexec -n P bench_cluster_grain [turns] [microseconds, 0: fib]
// [tasks, or n]
#include "tree.hpp"

namespace {

using namespace weft_bench;

/// The same work in all processes: so many steps of a generator.
long spin(long steps) {
  auto x = static_cast<unsigned long>(steps) | 1;
  for (long i = 0; i < steps; ++i) x = x * 6364136223846793005ul + 1442695040888963407ul;
  return static_cast<long>(x >> 40);
}
long steps_per_microsecond() {
  constexpr long steps = 1'000'000;
  std::vector<double> all;
  for (int i = 0; i < 9; ++i) {
    volatile long result = 0;
    all.push_back(seconds_of([&] { result = spin(steps); }));
  }
  return static_cast<long>(static_cast<double>(steps) / (1e6 * median_of(all)));
}
void work(long steps, weft::write<long> r) { r = spin(steps); }
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

}  // namespace

int main(int argc, char** argv) {
  const double microseconds = argc > 2 ? std::atof(argv[2]) : 20;
  const long n = argc > 3 ? std::atol(argv[3]) : microseconds == 0 ? 36 : 20'000;
  if (microseconds == 0)
    return time_search(argc, argv, "fib", [n] {
      weft::shared<long> r;
      weft::fork(fib, n, r);
      weft::sync();
      return r.get();
    });
  const long steps = static_cast<long>(microseconds * static_cast<double>(steps_per_microsecond()));
  return time_search(argc, argv, "equal tasks", [n, steps] {
    std::vector<weft::shared<long>> all(static_cast<std::size_t>(n));
    for (auto& r : all) weft::fork(work, steps, r);
    weft::sync();
    long total = 0;
    for (auto& r : all) total += r.get();
    return total;
  });
}
