// SPDX-License-Identifier: BSL-1.0
// Large values on a simulated network: how often they go, and whether they go while others are computed with.
#include "network.hpp"
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <vector>

namespace {

using table = std::vector<char>;

void compute(weft::read<table> t, double nanoseconds, weft::write<long> sum) {
  simulation::work(nanoseconds);
  sum = t->front() + t->back();
}

struct figures {
  double seconds = 0;
  std::uint64_t bytes = 0, sent = 0, cached = 0;
};
/// So many tasks of this length, each with one of some values in turn.
figures run(int processes, int tasks, int values, std::size_t size, double nanoseconds,
            const simulation::network_options& by, const weft::cluster_options& options) {
  figures f;
  long sum = 0, want = 0;
  for (int i = 0; i < tasks; ++i) want += 2 * (i % values % 100);
  simulation::run_in_virtual_time([&] {
    simulation::cluster c(processes, options, by);
    const std::uint64_t begin = simulation::time_here();
    sum = c.run([&] {
      std::deque<weft::shared<table>> tables;
      for (int i = 0; i < values; ++i) tables.emplace_back(table(size, static_cast<char>(i % 100)));
      std::deque<weft::shared<long>> sums(static_cast<std::size_t>(tasks));
      for (int i = 0; i < tasks; ++i)
        weft::fork(compute, tables[static_cast<std::size_t>(i % values)], nanoseconds,
                   sums[static_cast<std::size_t>(i)]);
      weft::sync();
      long all = 0;
      for (auto& s : sums) all += s.get();
      return all;
    });
    f.seconds = static_cast<double>(simulation::time_here() - begin) / 1e9;
    for (int i = 0; i < processes; ++i) {
      const weft::cluster_counters n = c.counters(i);
      f.bytes += n.bytes;
      f.sent += n.closures_sent;
      f.cached += n.values_cached;
    }
  });
  CHECK(sum == want);
  return f;
}
weft::cluster_options one_worker() {
  return {.runtime = {.workers = 1, .spin = std::chrono::microseconds(10)}};
}

}  // namespace

TEST_CASE("tasks of milliseconds are computed while the values of the next ones come") {
  constexpr std::size_t size = 1'000'000;
  constexpr int tasks = 100;
  for (const double way : {0.2, 1.0, 4.0})                // milliseconds, for a value
    for (const double length : {2.0, 5.0, 20.0, 50.0}) {  // of a task
      simulation::network_options by;
      by.per_byte = way * 1e6 / size;
      const figures f = run(2, tasks, tasks, size, length * 1e6, by, one_worker());
      const double share = tasks * length / 2e3 / f.seconds;
      std::printf(
          "a value of %.1f ms for each task of %.1f ms: %.3f of the time of two processes in bodies, %llu "
          "sent\n",
          way, length, share, static_cast<unsigned long long>(f.sent));
      // The other process can have no more than the line brings.
      const double possible = (1 + std::min(1.0, length / way)) / 2;
      CHECK(share >= 0.95 * possible);
      CHECK(f.sent <= tasks / 2 + 2);  // hardly one has gone in vain
    }
}

TEST_CASE("a value that many tasks read goes once to each process, in a small cache those that fit") {
  constexpr std::size_t size = 100'000;
  constexpr int tasks = 200;
  for (const int processes : {2, 3, 8})
    for (const int values : {1, 5}) {
      const figures f = run(processes, tasks, values, size, 1e6, {}, one_worker());
      const double all = static_cast<double>(size) * values * (processes - 1);
      std::printf("%d values for %d processes: %.1f MB sent, %llu values not sent\n", values, processes,
                  static_cast<double>(f.bytes) / 1e6, static_cast<unsigned long long>(f.cached));
      CHECK(static_cast<double>(f.bytes) <= 1.1 * all + 1000 * tasks);
      CHECK(f.sent == f.cached + static_cast<std::uint64_t>(values * (processes - 1)));
    }
  weft::cluster_options small = one_worker();
  small.cache_bytes = size + 1000;
  const figures one = run(2, tasks, 1, size, 1e6, {}, small), many = run(2, tasks, 5, size, 1e6, {}, small);
  CHECK(one.cached + 1 == one.sent);
  CHECK(many.cached < many.sent / 2);
  CHECK(many.bytes > many.sent / 2 * size);

  // 8 MB by a line of 10 Gbit/s, for each task of 5 ms or once.
  simulation::network_options by;
  by.per_byte = 0.8;
  weft::cluster_options none = one_worker();
  none.cache_bytes = 0;
  const figures kept = run(4, 64, 1, 8'000'000, 5e6, by, one_worker());
  const figures sent = run(4, 64, 1, 8'000'000, 5e6, by, none);
  std::printf("64 tasks of 5 ms read 8 MB: %.1f ms and %.1f MB where it is kept, else %.1f ms and %.1f MB\n",
              1e3 * kept.seconds, static_cast<double>(kept.bytes) / 1e6, 1e3 * sent.seconds,
              static_cast<double>(sent.bytes) / 1e6);
  CHECK(kept.bytes <= 3 * 8'800'000);
  CHECK(kept.seconds < sent.seconds);
}
