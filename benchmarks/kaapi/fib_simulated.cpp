// SPDX-License-Identifier: BSL-1.0
// Figure 6 on simulated processors, by the cost model of the tests. usage: fib_simulated N...
// For each N and 1, 2, 4, 8 and 16 workers a line: N, workers, virtual microseconds (the median of some
// machines whose caches are a little faster or slower).
#include "fib.hpp"
#include "simulation/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

struct charged {
  static void task() noexcept { simulation::work(5); }
};

double microseconds(unsigned workers, long n, double transfer) {
  double took = 0;
  simulation::prices p;
  p.transfer = transfer;
  simulation::run_with_prices(
      [&] {
        weft::runtime rt({.workers = workers});
        rt.run([&] {
          const double start = simulation::time_here();
          weft_bench::fib<charged>::all(n);
          took = (simulation::time_here() - start) / 1'000;
        });
      },
      p);
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    for (const unsigned workers : {1u, 2u, 4u, 8u, 16u}) {
      const long n = std::atol(argv[i]);
      std::array<double, 5> took{};
      for (std::size_t k = 0; k < took.size(); ++k)
        took[k] = microseconds(workers, n, 96 + 2 * static_cast<double>(k));
      std::sort(took.begin(), took.end());
      std::printf("%ld,%u,%.3f\n", n, workers, took[took.size() / 2]);
    }
}
