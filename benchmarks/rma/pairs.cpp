// SPDX-License-Identifier: BSL-1.0
// The micro-benchmark of Christgau and Schnor (2016, 6.2) on real processes: each locks and unlocks 1000
// random targets, itself included, and takes the time of each pair. No access between the two. Built with
// each MPI and run by benchmarks/papers.
// usage: mpiexec -n 4 pairs [pairs]. It prints a line for each memory, kind and share of exclusive locks:
// memory,kind,percent,first quartile,median,third quartile; microseconds.
#include <weft/rma.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace rma = weft::rma;

namespace {

using clock_type = std::chrono::steady_clock;

/// Microseconds of the pairs of all processes, sorted; in process 0.
std::vector<double> measure(const weft::mpi::communicator& world, rma::window<std::uint64_t>& window,
                            int pairs, unsigned exclusive) {
  std::mt19937 random(static_cast<unsigned>(world.rank()) + 1);
  std::vector<double> times;
  world.barrier();
  for (int i = 0; i < pairs; ++i) {
    const int target = static_cast<int>(random() % static_cast<unsigned>(world.size()));
    const bool writes = random() % 100 < exclusive;
    const auto start = clock_type::now();
    writes ? window.lock_exclusive(target) : window.lock_shared(target);
    writes ? window.unlock_exclusive(target) : window.unlock_shared(target);
    times.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - start).count());
  }
  std::vector<double> all(world.rank() == 0 ? times.size() * static_cast<std::size_t>(world.size()) : 0);
  MPI_Gather(times.data(), pairs, MPI_DOUBLE, all.data(), pairs, MPI_DOUBLE, 0, world.handle());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 1000;
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi})
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::rma_rw, rma::lock_kind::d_mcs}) {
      rma::window<std::uint64_t> window(world, 1, {.lock = kind, .backend = backend});
      for (const unsigned exclusive : {0U, 50U, 100U}) {
        if (exclusive != 100 && !rma::has_shared(kind)) continue;
        measure(world, window, pairs / 10, exclusive);  // to warm up
        const std::vector<double> times = measure(world, window, pairs, exclusive);
        if (world.rank() != 0) continue;
        const auto quartile = [&times](std::size_t q) { return times[(times.size() - 1) * q / 4]; };
        std::printf("%s,%s,%u,%.3f,%.3f,%.3f\n", rma::name(backend), rma::name(kind), exclusive, quartile(1),
                    quartile(2), quartile(3));
      }
    }
}
