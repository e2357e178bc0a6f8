// SPDX-License-Identifier: BSL-1.0
// What a process that stays outside MPI costs the others: they add to its memory and lock it while it waits
// in a barrier of MPI (in MPI), and while it computes and calls nothing (absent), in turns, in one job.
//   k/s        thousands of operations of the others in a second, medians
//   one-sided  whether the window says that its processes may stay outside MPI
//   max ms     the longest operation, median of the rounds
// usage: mpiexec -n 2 bench_rma_absent [rounds]
#include <weft/rma.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace rma = weft::rma;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr double absence = 0.25, operating = 0.2;  // seconds

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}
double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

struct figures {
  double rate = 0, longest = 0;
};
figures operator+(figures a, figures b) { return {a.rate + b.rate, std::max(a.longest, b.longest)}; }

/// The others operate on process 0, which is absent or not. *Returns*: what all have done together.
figures round(const weft::mpi::communicator& world, bool absent, auto operation) {
  figures mine;
  world.barrier();
  const auto start = clock_type::now();
  if (world.rank() != 0) {
    std::uint64_t done = 0;
    double before = 0, now = 0;
    for (; now < operating; before = now) {
      operation();
      ++done;
      now = seconds_since(start);
      mine.longest = std::max(mine.longest, now - before);
    }
    mine.rate = static_cast<double>(done) / now;
  } else if (absent) {
    volatile std::uint64_t number = 1;
    while (seconds_since(start) < absence)
      for (int i = 0; i < 1000; ++i) number = number * 0x9e3779b97f4a7c15 + 1;
  }
  world.barrier();
  figures all;
  for (const figures& f : world.gather(mine)) all = all + f;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  if (world.size() < 2) {
    std::fprintf(stderr, "bench_rma_absent: needs two processes or more\n");
    return EXIT_FAILURE;
  }
  if (world.rank() == 0)
    std::printf("%d processes, medians of %d rounds\n%-9s %-9s %-12s %12s %12s %9s %14s %14s\n", world.size(),
                rounds, "memory", "one-sided", "operation", "in MPI, k/s", "absent, k/s", "absent /",
                "in MPI, max ms", "absent, max ms");
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi, rma::backend::messages}) {
    rma::window<std::uint64_t> window(world, 1, {.backend = backend});
    const auto measure = [&](const char* what, auto operation) {
      std::vector<double> rates[2], longest[2], ratios;
      for (int i = 0; i < rounds; ++i) {
        figures of[2];
        for (const int absent : {i % 2, 1 - i % 2}) of[absent] = round(world, absent == 1, operation);
        for (const int absent : {0, 1}) {
          rates[absent].push_back(1e-3 * of[absent].rate);
          longest[absent].push_back(1e3 * of[absent].longest);
        }
        ratios.push_back(of[1].rate / of[0].rate);
      }
      if (world.rank() != 0) return;
      std::printf("%-9s %-9s %-12s %12.4g %12.4g %9.2g %14.3g %14.3g\n", rma::name(backend),
                  window.one_sided() ? "yes" : "no", what, median(rates[0]), median(rates[1]), median(ratios),
                  median(longest[0]), median(longest[1]));
      std::fflush(stdout);
    };
    measure("fetch_add", [&] { window.fetch_add(0, 0, 1); });
    measure("lock, unlock", [&] {
      window.lock_exclusive(0);
      window.unlock_exclusive(0);
    });
  }
}
