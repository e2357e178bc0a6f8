// SPDX-License-Identifier: BSL-1.0
// Figure 6 on this machine. usage: fib TURNS N...
// For each N and each number of workers up to the processors a line: N, workers (0: the plain program),
// median seconds. The workers take turns.
#include "fib.hpp"

#include "../cluster/turns.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace {

struct free_of_charge {
  static void task() noexcept {}
};

[[gnu::noinline]] long plain_fib(long n) { return n < 2 ? n : plain_fib(n - 1) + plain_fib(n - 2); }

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 3;
  const unsigned most = std::max(1u, std::thread::hardware_concurrency());
  for (int i = 2; i < argc; ++i) {
    const long n = std::atol(argv[i]);
    long expected = 0;
    std::vector<std::vector<double>> seconds(most + 1);
    for (int turn = 0; turn < turns; ++turn) {
      seconds[0].push_back(weft_bench::seconds_of([&] { expected = plain_fib(n); }));
      for (unsigned workers = 1; workers <= most; ++workers) {
        weft::runtime rt({.workers = workers});
        long found = 0;
        seconds[workers].push_back(weft_bench::seconds_of(
            [&] { found = rt.run([n] { return weft_bench::fib<free_of_charge>::all(n); }); }));
        if (found != expected) throw std::runtime_error("the results differ");
      }
    }
    for (unsigned workers = 0; workers <= most; ++workers)
      std::printf("%ld,%u,%.6f\n", n, workers, weft_bench::median_of(seconds[workers]));
  }
}
