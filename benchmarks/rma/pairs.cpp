// SPDX-License-Identifier: BSL-1.0
// The micro-benchmarks of Christgau and Schnor (2016) on real processes. 6.2: each locks and unlocks 1000
// random targets, itself included, and takes the time of each pair, without an access between the two. 6.4:
// process 0 has an exclusive lock of itself, for which the others wait to read; it writes and unlocks, and
// takes the time of that. Built with each MPI and run by benchmarks/papers.
// usage: mpiexec -n 4 pairs [pairs [writes]]. It prints a line for each memory, kind and share of exclusive
// locks: pairs,memory,kind,percent,first quartile,median,third quartile,time of all; and for each memory,
// kind and number of bytes: writer,memory,kind,bytes,first quartile,median,third quartile. Microseconds.
#include <weft/rma.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

namespace rma = weft::rma;

namespace {

using clock_type = std::chrono::steady_clock;

double microseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - start).count();
}

struct figures {
  std::vector<double> times;  // of the pairs of all processes, sorted; in process 0
  double all = 0;             // from the first to the last
};
figures measure(const weft::mpi::communicator& world, rma::window<std::byte>& window, int pairs,
                unsigned exclusive) {
  std::mt19937 random(static_cast<unsigned>(world.rank()) + 1);
  std::vector<double> times;
  world.barrier();
  const auto first = clock_type::now();
  for (int i = 0; i < pairs; ++i) {
    const int target = static_cast<int>(random() % static_cast<unsigned>(world.size()));
    const bool writes = random() % 100 < exclusive;
    const auto start = clock_type::now();
    writes ? window.lock_exclusive(target) : window.lock_shared(target);
    writes ? window.unlock_exclusive(target) : window.unlock_shared(target);
    times.push_back(microseconds_since(start));
  }
  world.barrier();
  figures of;
  of.all = microseconds_since(first);
  of.times.resize(world.rank() == 0 ? times.size() * static_cast<std::size_t>(world.size()) : 0);
  MPI_Gather(times.data(), pairs, MPI_DOUBLE, of.times.data(), pairs, MPI_DOUBLE, 0, world.handle());
  std::sort(of.times.begin(), of.times.end());
  return of;
}

/// Times of the writer, sorted; in process 0.
std::vector<double> writer(const weft::mpi::communicator& world, rma::window<std::byte>& window,
                           std::size_t bytes, int writes) {
  constexpr double readers_have_come = 300;  // microseconds
  std::vector<std::byte> data(bytes);
  std::vector<double> times;
  for (int i = 0; i < writes; ++i) {
    if (world.rank() == 0) window.lock_exclusive(0);
    world.barrier();
    if (world.rank() == 0) {
      const auto waits = clock_type::now();
      while (microseconds_since(waits) < readers_have_come) continue;
      const auto start = clock_type::now();
      window.put(0, 0, std::span<const std::byte>(data));
      window.unlock_exclusive(0);
      times.push_back(microseconds_since(start));
    } else {
      window.lock_shared(0);
      window.get(0, 0, std::span(data));
      window.unlock_shared(0);
    }
    world.barrier();
  }
  std::sort(times.begin(), times.end());
  return times;
}

void print(const char* what, rma::backend backend, rma::lock_kind kind, unsigned number,
           const std::vector<double>& times) {
  const auto quartile = [&times](std::size_t q) { return times[(times.size() - 1) * q / 4]; };
  std::printf("%s,%s,%s,%u,%.3f,%.3f,%.3f", what, rma::name(backend), rma::name(kind), number, quartile(1),
              quartile(2), quartile(3));
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 1000, writes = argc > 2 ? std::atoi(argv[2]) : 101;
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi})
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::rma_rw, rma::lock_kind::d_mcs}) {
      rma::window<std::byte> window(world, 1024, {.lock = kind, .backend = backend});
      for (const unsigned exclusive : {0U, 50U, 100U}) {
        if (exclusive != 100 && !rma::has_shared(kind)) continue;
        measure(world, window, (pairs + 9) / 10, exclusive);  // to warm up
        const figures of = measure(world, window, pairs, exclusive);
        if (world.rank() != 0) continue;
        print("pairs", backend, kind, exclusive, of.times);
        std::printf(",%.3f\n", of.all);
      }
      if (!rma::has_shared(kind)) continue;
      for (const unsigned bytes : {32U, 512U, 1024U}) {
        const std::vector<double> times = writer(world, window, bytes, writes);
        if (world.rank() != 0) continue;
        print("writer", backend, kind, bytes, times);
        std::printf("\n");
      }
    }
}
