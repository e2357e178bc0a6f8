// SPDX-License-Identifier: BSL-1.0
// Locks on remote memory: each kind beside bare calls of MPI_Win_lock of the same MPI, in one job, in turns.
//   free       process 0 locks the last process, which is in a barrier; nanoseconds for lock and unlock
//   hot        all processes lock process 0; microseconds for lock, three accesses and unlock
// usage: mpiexec -n 2 bench_rma_locks [pairs]
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

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// Seconds of a pair of calls that nobody disturbs, in process 0, on the last process.
double undisturbed(const weft::mpi::communicator& world, auto pair) {
  constexpr int rounds = 20000;
  double seconds = 0;
  world.barrier();
  if (world.rank() == 0) {
    const auto start = clock_type::now();
    for (int i = 0; i < rounds; ++i) pair(world.size() - 1);
    seconds = std::chrono::duration<double>(clock_type::now() - start).count() / rounds;
  }
  world.barrier();
  return seconds;
}

/// Seconds of a lock of process 0, three accesses and an unlock, if all processes do that; so many of 100 are
/// exclusive.
double contended(const weft::mpi::communicator& world, rma::window<std::uint64_t>& w, unsigned exclusive) {
  constexpr int rounds = 2000;
  std::mt19937 random(static_cast<unsigned>(world.rank()));
  world.barrier();
  const auto start = clock_type::now();
  for (int i = 0; i < rounds; ++i)
    if (random() % 100 < exclusive) {
      const rma::exclusive_lock hold(w, 0);
      const std::uint64_t v = w.get(0, 0);
      w.put(0, 0, v + 1);
      w.put(0, 1, v + 1);
    } else {
      const rma::shared_lock hold(w, 0);
      if (w.get(0, 0) != w.get(0, 1)) std::abort();
    }
  world.barrier();
  return std::chrono::duration<double>(clock_type::now() - start).count() / rounds / world.size();
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 9;
  if (world.rank() == 0)
    std::printf(
        "%d processes, medians of %d pairs; / mpi: to MPI_Win_lock in the same turn\n%-12s %8s %14s %7s %14s "
        "%7s %14s %7s\n",
        world.size(), pairs, "kind", "memory", "exclusive, ns", "/ mpi", "shared, ns", "/ mpi", "hot, us",
        "/ mpi");
  MPI_Win bare = MPI_WIN_NULL;
  void* memory = nullptr;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, world.handle(), &memory, &bare);
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi}) {
    rma::window<std::uint64_t> baseline(world, 2, {.lock = rma::lock_kind::mpi, .backend = backend});
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::rma_rw, rma::lock_kind::d_mcs}) {
      rma::window<std::uint64_t> w(world, 2, {.lock = kind, .backend = backend});
      std::vector<double> seconds[3], ratios[3];
      for (int i = 0; i < pairs; ++i)
        for (int form = 0; form < 3; ++form) {
          if (form == 1 && !rma::has_shared(kind)) continue;
          double beside = 0, time = 0;
          if (form == 2) {
            const unsigned exclusive = rma::has_shared(kind) ? 50 : 100;
            beside = contended(world, baseline, exclusive);
            time = contended(world, w, exclusive);
          } else {
            beside = undisturbed(world, [&](int target) {
              MPI_Win_lock(form == 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, bare);
              MPI_Win_unlock(target, bare);
            });
            time = undisturbed(world, [&](int target) {
              form == 1 ? w.lock_shared(target) : w.lock_exclusive(target);
              form == 1 ? w.unlock_shared(target) : w.unlock_exclusive(target);
            });
          }
          seconds[form].push_back(time);
          ratios[form].push_back(time / beside);
        }
      if (world.rank() != 0) continue;
      std::printf("%-12s %8s", rma::name(kind), rma::name(backend));
      for (int form = 0; form < 3; ++form)
        if (seconds[form].empty())
          std::printf(" %14s %7s", "-", "-");
        else
          std::printf(" %14.1f %7.2f", median(seconds[form]) * (form == 2 ? 1e6 : 1e9), median(ratios[form]));
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  MPI_Win_free(&bare);
}
