// SPDX-License-Identifier: BSL-1.0
// Tasks that read one large table, in processes that keep what they have read, and in processes that do not;
// and tasks that read a large value each, of which nothing can be kept to advantage. usage: mpiexec -n P
// bench_cluster_table [turns] [MB] [milliseconds of a task] [tasks] [own]
#include "turns.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <vector>

namespace {

using table = std::vector<double>;

/// So many steps of a generator, which chooses what is read.
void look_up(long begin, long steps, weft::read<table> t, weft::write<double> sum) {
  auto x = static_cast<unsigned long>(begin) | 1;
  double all = 0;
  for (long i = 0; i < steps; ++i) {
    x = x * 6364136223846793005ul + 1442695040888963407ul;
    if (i % 16 == 0) all += (*t)[(x >> 20) % t->size()];
  }
  sum = all;
}
long steps_per_millisecond() {
  const table t(1000, 1.0);
  std::vector<double> all;
  constexpr long steps = 1'000'000;
  for (int i = 0; i < 9; ++i)
    all.push_back(weft_bench::seconds_of([&] {
      unsigned long x = 1;
      for (long k = 0; k < steps; ++k) x = x * 6364136223846793005ul + 1442695040888963407ul;
      volatile unsigned long result = x;
      static_cast<void>(result);
    }));
  return static_cast<long>(static_cast<double>(steps) / (1e3 * weft_bench::median_of(all)));
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  const double megabytes = argc > 2 ? std::atof(argv[2]) : 8;
  const double milliseconds = argc > 3 ? std::atof(argv[3]) : 5;
  const int tasks = argc > 4 ? std::atoi(argv[4]) : 64;
  const bool own = argc > 5 && std::strcmp(argv[5], "own") == 0;

  weft::cluster with(argc, argv, {.runtime = {.workers = 1}});
  weft::cluster without(argc, argv, {.runtime = {.workers = 1}, .cache_bytes = 0});
  const long steps = with.run([milliseconds] {
    return static_cast<long>(milliseconds * static_cast<double>(steps_per_millisecond()));
  });
  const auto size = static_cast<std::size_t>(megabytes * 1e6 / sizeof(double));
  const auto once = [&](auto& where) {
    return where.run([=] {
      std::deque<weft::shared<table>> tables;
      for (int i = 0; i < (own ? tasks : 1); ++i) tables.emplace_back(table(size, 1.0 + i));
      std::deque<weft::shared<double>> sums(static_cast<std::size_t>(tasks));
      for (int i = 0; i < tasks; ++i)
        weft::fork(look_up, static_cast<long>(i), steps, tables[static_cast<std::size_t>(own ? i : 0)],
                   sums[static_cast<std::size_t>(i)]);
      weft::sync();
      double all = 0;
      for (auto& s : sums) all += s.get();
      return all;
    });
  };
  weft::runtime alone({.workers = 1});
  std::vector<double> kept, sent, serial;
  for (int i = 0; i < turns; ++i) {
    double a = 0, b = 0, want = 0;
    kept.push_back(weft_bench::seconds_of([&] { a = once(with); }));
    sent.push_back(weft_bench::seconds_of([&] { b = once(without); }));
    if (with.rank() == 0) serial.push_back(weft_bench::seconds_of([&] { want = once(alone); }));
    if (a != b || (with.rank() == 0 && a != want)) throw std::runtime_error("the results differ");
  }
  if (with.rank() != 0) return 0;
  weft_bench::print_turns(own ? "tables of their own" : "one table", "kept", kept, "sent", sent);
  weft_bench::print_turns(own ? "tables of their own" : "one table", "kept", kept, "one worker", serial);
  const auto per_run = [turns](const char* what, const weft::cluster_counters& n) {
    std::printf("%s: for each run %.1f MB sent by process 0, %.1f tasks, %.1f values not sent again\n", what,
                static_cast<double>(n.bytes) / 1e6 / turns, static_cast<double>(n.closures_sent) / turns,
                static_cast<double>(n.values_cached) / turns);
  };
  per_run("kept", with.counters());
  per_run("sent", without.counters());
}
