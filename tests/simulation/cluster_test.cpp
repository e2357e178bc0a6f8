// SPDX-License-Identifier: BSL-1.0
// The protocol of clusters between hundreds of processes on a simulated network, with one worker each.
#include "searches.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/cluster/migratable.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace simulation;

namespace {

/// `each`: how many seconds all bodies compute, for each process.
void report(const char* name, int processes, double each, const searched& s) {
  std::printf(
      "%s, %d processes: %.4f s, %.4f of them in bodies; messages of a process: %.0f on average, %llu at "
      "most, "
      "%llu of process 0; of all: tasks %llu, requests %llu, in vain %llu, waits %llu, pushed %llu, bytes "
      "%llu; "
      "points %llu, switches %llu\n",
      name, processes, s.seconds, each / s.seconds, static_cast<double>(s.messages) / processes,
      static_cast<unsigned long long>(s.most), static_cast<unsigned long long>(s.of_first),
      static_cast<unsigned long long>(s.sent), static_cast<unsigned long long>(s.requests),
      static_cast<unsigned long long>(s.in_vain), static_cast<unsigned long long>(s.lifelines),
      static_cast<unsigned long long>(s.pushed), static_cast<unsigned long long>(s.bytes),
      static_cast<unsigned long long>(s.passed.points), static_cast<unsigned long long>(s.passed.switches));
}

void search_whole_t1(int processes, double least_efficiency) {
  const searched s =
      search_t1(processes, 1, weft_bench::t1_depth, t1_nodes + t1_leaves * weft_bench::one_leaf);
  report("T1 of UTS", processes, 1, s);
  CHECK(weft_bench::nodes_of(s.counts) == t1_nodes);
  CHECK(s.counts / weft_bench::one_leaf == t1_leaves);
  CHECK(s.seconds <= 1 / least_efficiency);
  CHECK(s.most <= 1'000);
  CHECK(s.sent == s.received);
  CHECK(s.sent >= static_cast<unsigned>(processes));
}

/// Adds up the numbers of all processes, in each of them.
struct tour {
  int next = 0;
  long sum = 0;
  void operator()() {
    for (; next < weft::this_thread::processes(); ++next) {
      if (weft::this_thread::process() != next) weft::this_thread::migrate(next);
      work(1000);
      sum += weft::this_thread::process();
    }
  }
};

}  // namespace

#if !defined(WEFT_MUTANTS)
TEST_CASE("the search of an unbalanced tree keeps 64 simulated processes busy") { search_whole_t1(64, 0.80); }
#endif

TEST_CASE("the search of an unbalanced tree keeps 256 and 1,024 simulated processes busy") {
  if (!weft_test::long_run()) return;
  search_whole_t1(256, 0.75);
  search_whole_t1(1'024, 0.70);
}

TEST_CASE("N-queens on as many processes as in the paper: few are ever idle") {
  if (!weft_test::long_run()) return;
  constexpr int n = 15, processes = 1'422, last = 7;
  constexpr double each = 4;
  const searched s = search_queens(processes, each, n, last);
  report("N-queens 15", processes, each, s);
  CHECK(s.counts / one_solution == 2'279'184);
  CHECK(s.seconds <= each / 0.99);
}

TEST_CASE("who has no work asks one that had some, or anybody, whichever brings more") {
  // One process has all.
  const auto check_loop = [](int processes, double nanoseconds) {
    const int tasks = 50 * processes;
    const searched loop = search(processes, {}, [tasks, nanoseconds](const sums& c) {
      for (int i = 0; i < tasks; ++i)
        weft::fork([](double length, sums all) { work(length), all += 1; }, nanoseconds, c);
    });
    CHECK(loop.counts == tasks);
    const double share = 50e-9 * nanoseconds / loop.seconds;
    std::printf("a loop of 50 tasks of %.1f ms for each of %d processes: %.2f of the time in bodies\n",
                nanoseconds / 1e6, processes, share);
    CHECK(share >= 0.85);
  };
  check_loop(16, 0.1e6);
  check_loop(64, 1e6);
  // Many have some, and nobody needs to wait for the one that began.
  constexpr int depth = 8, processes = 64;
  const long want = count(root_of(weft_bench::t1), depth);
  double asked_first = 0, asked = 0;  // in several runs: a small change makes another course of each
  for (const double length : {0.0036, 0.0037, 0.0038, 0.0039, 0.004, 0.0041, 0.0042, 0.0044}) {
    const searched tree = search_t1(processes, length, depth, want);
    CHECK(tree.counts == want);
    asked_first += static_cast<double>(tree.of_first);
    asked += static_cast<double>(tree.messages) / processes;
  }
  std::printf("messages of process 0 in eight searches of a tree: %.2f times those of all on average\n",
              asked_first / asked);
  CHECK(asked_first <= 1.03 * asked);
}

TEST_CASE("a loop in one process keeps 16 simulated processes busy") {
  constexpr int processes = 16, times = 16'000;
  for (const double nanoseconds : {20e3, 200e3}) {
    const searched loop = search(processes, {}, [nanoseconds](const sums& c) {
      weft::fork_for(
          0, times, [](int i, double length, sums all) { work(length), all += i; }, nanoseconds, c);
    });
    const double each = nanoseconds * 1e-9 * times / processes;
    report("a loop", processes, each, loop);
    CHECK(loop.counts == times * (times - 1L) / 2);
    CHECK(loop.sent >= processes - 1);
    CHECK(each / loop.seconds >= 0.8);
  }
}

TEST_CASE("threads go round 16 simulated processes, whatever overtakes what") {
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    simulation::run_in_virtual_time([seed] {
      constexpr int processes = 16, threads = 8;
      simulation::cluster c(processes, one_worker(), {.delays = seed});
      long sum = 0;
      c.run([&sum] {
        for (int i = 0; i < threads; ++i)
          weft::spawn(weft::migratable, tour{}, [&sum](const tour& t) { sum += t.sum; });
        weft::sync();
        return 0;
      });
      CHECK(sum == threads * processes * (processes - 1) / 2);
      CHECK(c.counters(0).threads_sent == threads * (processes - 1));
    });
}

TEST_CASE("who has no work asks those of the same machine first, if there are others") {
  constexpr int processes = 64, depth = 6;
  const long want = count(root_of(weft_bench::t1), depth);
  simulation::network_options by{.far = 20'000};
  by.machine = 8;
  const searched near = search_t1(processes, 0.05, depth, want, by);
  report("a tree on 8 machines with 8 processes each", processes, 0.05, near);
  std::printf("messages between machines: %llu of %llu\n",
              static_cast<unsigned long long>(near.between_machines),
              static_cast<unsigned long long>(near.messages));
  CHECK(near.counts == want);
  // Of those chosen at random 8 in 9 are on other machines.
  CHECK(static_cast<double>(near.between_machines) <= 0.5 * static_cast<double>(near.messages));
}

TEST_CASE("processes without work soon ask rarely, and process 0 does not tell each of them the end") {
  constexpr int processes = 300;
  simulation::run_in_virtual_time([] {
    simulation::cluster c(processes, one_worker());
    for (const int result : {1, 2})
      CHECK(c.run([result] {
        work(5e6);
        return result;
      }) == result);
    for (int i = 0; i < processes; ++i) {
      const weft::cluster_counters n = c.counters(i);
      if (i != 0) CHECK(n.requests > 20);
      CHECK(n.requests < 40);
      CHECK(n.messages < 150);
    }
  });
}

TEST_CASE("after a serial phase all have work at once, and they ask next to nothing meanwhile") {
  constexpr int processes = 64, phases = 4, each = 20;
  constexpr double serial = 50e6, length = 1e6;
  const searched s = search(processes, {}, [](const sums& c) {
    for (int p = 0; p < phases; ++p) {
      work(serial);
      for (int i = 0; i < processes * each; ++i)
        weft::fork([](double nanoseconds, sums all) { work(nanoseconds), all += 1; }, double{length}, c);
      weft::sync();
    }
  });
  report("serial phases of 50 ms, and loops of 20 ms", processes, phases * (serial + each * length) / 1e9, s);
  CHECK(s.counts == phases * processes * each);
  CHECK(phases * (serial + each * length) / 1e9 >= 0.95 * s.seconds);  // 0.64 where they only ask at random
  CHECK(s.in_vain <= 40 * phases * processes);
  CHECK(s.lifelines > 0);
  CHECK(s.pushed > 0);
}

TEST_CASE("several short tasks of a small frame go in one answer") {
  constexpr int blocks = 50, block = 50;
  const searched s = search(2, {}, [](const sums&) {
    for (int b = 0; b < blocks; ++b) {
      std::vector<weft::shared<long>> all(block);
      for (auto& r : all) weft::fork([](weft::write<long> w) { work(20'000), w = 1; }, r);
      weft::sync();
    }
  });
  const double messages = 1000.0 * static_cast<double>(s.messages) / static_cast<double>(s.sent);
  std::printf(
      "frames of 50 tasks of 20 us, 2 processes: messages of both for each 1,000 tasks sent %.0f; "
      "%.4f s\n",
      messages, s.seconds);
  CHECK(s.sent > blocks * block / 4);
  CHECK(messages < 1'500);  // 3,170 where each answer brings one
}

TEST_CASE("a simulated cluster does the same each time") {
  constexpr int depth = 6;
  const long want = count(root_of(weft_bench::t1), depth);
  std::uint64_t same = 0, last = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto once = [&] { return search_t1(40, 0.002, depth, want, {.delays = seed}); };
    const searched one = once(), two = once();
    CHECK(one.counts == want);
    CHECK(one.sent > 0);
    same += one.passed.hash == two.passed.hash && one.messages == two.messages;
    CHECK(one.passed.hash != last);
    last = one.passed.hash;
  }
  weft_test::figure("simulated_cluster_replays", same);
  CHECK(same == 20);
}
