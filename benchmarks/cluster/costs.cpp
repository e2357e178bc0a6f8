// SPDX-License-Identifier: BSL-1.0
// What a cluster of one process costs, and how long a task is away that another process steals.
// usage: mpiexec -n P bench_cluster_costs [turns] [n]     one process: fib(n); more: an empty task
#include "turns.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <cstdlib>
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

void nothing(weft::write<int> r) { r = 1; }

void time_fib(weft::cluster& c, int turns, long n) {
  weft::runtime alone({.workers = 1});
  std::vector<double> plain, in_cluster;
  const auto once = [n](auto& where) {
    return where.run([n] {
      weft::shared<long> r;
      weft::fork(fib, n, r);
      weft::sync();
      return r.get();
    });
  };
  for (int i = 0; i < turns; ++i) {
    long a = 0, b = 0;
    plain.push_back(weft_bench::seconds_of([&] { a = once(alone); }));
    in_cluster.push_back(weft_bench::seconds_of([&] { b = once(c); }));
    if (a != b) throw std::runtime_error("the results differ");
  }
  weft_bench::print_turns("fib", "cluster", in_cluster, "runtime", plain);
}

/// Forks an empty task, lets it lie until another process has taken it, and waits for it.
void time_trips(weft::cluster& c, int turns) {
  std::vector<double> taken, whole;
  for (int i = 0; i < turns; ++i)
    c.run([&] {
      for (int j = 0; j < 100; ++j) {
        weft::shared<int> r;
        const auto sent = [&c] {
          std::atomic_signal_fence(std::memory_order_seq_cst);  // read anew
          return c.counters().closures_sent;
        };
        const auto before = sent();
        const auto begin = std::chrono::steady_clock::now();
        weft::fork(nothing, r);
        while (sent() == before && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(5)) {
        }
        const bool gone = sent() != before;
        const auto middle = std::chrono::steady_clock::now();
        weft::sync();
        const auto end = std::chrono::steady_clock::now();
        if (!gone) continue;  // it ran inside fork
        taken.push_back(std::chrono::duration<double>(middle - begin).count());
        whole.push_back(std::chrono::duration<double>(end - begin).count());
      }
    });
  if (c.rank() != 0) return;
  if (whole.empty()) throw std::runtime_error("no task was stolen");
  std::printf("empty task: taken after %.1f us, back after %.1f us (median of %zu)\n",
              1e6 * weft_bench::median_of(taken), 1e6 * weft_bench::median_of(whole), whole.size());
}

}  // namespace

int main(int argc, char** argv) {
  weft::cluster c(argc, argv, {.runtime = {.workers = 1}});
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  if (c.size() == 1)
    time_fib(c, turns, argc > 2 ? std::atol(argv[2]) : 35);
  else
    time_trips(c, turns);
}
