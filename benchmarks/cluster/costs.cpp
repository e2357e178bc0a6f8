// SPDX-License-Identifier: BSL-1.0
// What a cluster of one process costs, and how long a task is away that another process of the machine
// steals. usage: mpiexec -n P bench_cluster_costs [turns] [n] [order] One process: fib(n), and a Cholesky
// factorisation of a matrix of this order, in tiles. More: an empty task.
#include "../graph/cholesky.hpp"
#include "turns.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>

namespace {

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

/// `once` does the same by a runtime or a cluster.
template <class Once>
void time_both(weft::cluster& c, const char* what, int turns, const Once& once) {
  weft::runtime alone({.workers = 1});
  once(alone), once(c);  // what both keep for later is there
  std::vector<double> plain, in_cluster;
  for (int i = 0; i < turns; ++i) {
    // Each is the first in every second turn.
    if (i % 2 == 0) plain.push_back(once(alone));
    in_cluster.push_back(once(c));
    if (i % 2 != 0) plain.push_back(once(alone));
  }
  weft_bench::print_turns(what, "cluster", in_cluster, "runtime", plain);
}

void time_fib(weft::cluster& c, int turns, long n) {
  std::optional<long> expected;
  time_both(c, "fib", turns, [n, &expected](auto& where) {
    long found = 0;
    const double seconds = weft_bench::seconds_of([&] {
      found = where.run([n] {
        weft::shared<long> r;
        weft::fork(fib, n, r);
        weft::sync();
        return r.get();
      });
    });
    if (found != expected.value_or(found)) throw std::runtime_error("the results differ");
    expected = found;
    return seconds;
  });
}

void time_cholesky(weft::cluster& c, int turns, int order) {
  constexpr int edge = 128;
  if (order < edge || order % edge != 0)
    throw std::runtime_error("the order of the matrix is to be a multiple of 128");
  time_both(c, "Cholesky", turns, [order](auto& where) {
    weft_bench::matrix<edge> m(order);
    const double seconds = weft_bench::seconds_of([&] { where.run([&m] { weft_bench::fork_cholesky(m); }); });
    if (!m.is_factor()) throw std::runtime_error("this is not the factor");
    return seconds;
  });
}

int this_rank = 0;

/// In memory that the processes of the machine share: the number of the last task that another process than
/// the first has begun, and when, in nanoseconds of the clock of the machine.
struct begun {
  std::atomic<long> number;
  std::atomic<long> when;
};
static_assert(std::atomic<long>::is_always_lock_free);
begun* last_begun = nullptr;

void nothing(long number, weft::write<int> r) {
  if (this_rank != 0) {
    last_begun->when.store(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1),
                           std::memory_order_relaxed);            // published by the next one
    last_begun->number.store(number, std::memory_order_release);  // pairs with the body that waits
  }
  r = 1;
}

/// Forks an empty task, lets it lie until another process has begun it, and waits for it.
void time_trips(weft::cluster& c, int turns) {
  using clock_type = std::chrono::steady_clock;
  std::vector<double> there, whole;
  long number = 0;
  for (int i = 0; i < turns; ++i)
    c.run([&] {
      for (int j = 0; j < 100; ++j) {
        weft::shared<int> r;
        const auto gone = [mine = ++number] {
          return last_begun->number.load(std::memory_order_acquire) == mine;  // pairs with the task
        };
        const auto begin = clock_type::now();
        weft::fork(nothing, number, r);
        while (!gone() && clock_type::now() - begin < std::chrono::milliseconds(5)) {
        }
        weft::sync();
        const auto end = clock_type::now();
        if (!gone()) continue;  // it ran here
        const clock_type::time_point came{
            std::chrono::nanoseconds(last_begun->when.load(std::memory_order_relaxed))};
        there.push_back(std::chrono::duration<double>(came - begin).count());
        whole.push_back(std::chrono::duration<double>(end - begin).count());
      }
    });
  if (c.rank() != 0) return;
  if (whole.empty()) throw std::runtime_error("no task was stolen");
  std::printf("empty task: begun there after %.1f us, back after %.1f us (median of %zu)\n",
              1e6 * weft_bench::median_of(there), 1e6 * weft_bench::median_of(whole), whole.size());
}

/// Makes what last_begun is. A process of another machine ends the job.
class shared_memory {
 public:
  explicit shared_memory(int rank) {
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_allocate_shared(rank == 0 ? sizeof(begun) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &last_begun,
                            &window_);
    MPI_Win_shared_query(window_, 0, &size, &unit, &last_begun);
    if (rank == 0) new (last_begun) begun{};
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~shared_memory() { MPI_Win_free(&window_); }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

int main(int argc, char** argv) {
  weft::cluster c(argc, argv, {.runtime = {.workers = 1}});
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  if (c.size() == 1) {
    time_fib(c, turns, argc > 2 ? std::atol(argv[2]) : 35);
    time_cholesky(c, turns, argc > 3 ? std::atoi(argv[3]) : 2048);
  } else {
    this_rank = c.rank();
    const shared_memory made(this_rank);
    time_trips(c, turns);
  }
}
