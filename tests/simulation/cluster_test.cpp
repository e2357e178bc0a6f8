// SPDX-License-Identifier: BSL-1.0
// The protocol of clusters between hundreds of processes on a simulated network, with one worker each.
#include "network.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "uts/config.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

using simulation::time_here;
using simulation::work;
using weft_bench::node;

template <>
inline constexpr bool weft::remote::travels_as_bytes<node> = true;

namespace {

using sums = weft::reduce<long, std::plus<>>;

weft::cluster_options one_worker() {
  return {.runtime = {.workers = 1, .spin = std::chrono::microseconds(10)}};
}

/// What a program has counted, how long it took, and what its processes have exchanged.
struct searched {
  long counts = 0;
  double seconds = 0;
  std::uint64_t messages = 0, most = 0, of_first = 0, sent = 0, received = 0;
  std::uint64_t requests = 0, in_vain = 0, bytes = 0, between_machines = 0;
  simulation::passed passed{};
};

/// Runs a search, whose tasks add to a sum.
template <class Search>
searched search(int processes, const simulation::network_options& by, Search fork) {
  searched s;
  s.passed = simulation::run_in_virtual_time([&] {
    simulation::cluster c(processes, one_worker(), by);
    const std::uint64_t start = time_here();
    s.counts = c.run([&] {
      weft::shared<long> sum(0L);
      fork(weft::reduce(sum, std::plus<>()));
      weft::sync();
      return sum.get();
    });
    s.seconds = static_cast<double>(time_here() - start) / 1e9;
    for (int i = 0; i < processes; ++i) {
      const weft::cluster_counters n = c.counters(i);
      s.messages += n.messages;
      s.most = std::max(s.most, n.messages);
      s.sent += n.closures_sent;
      s.received += n.closures_received;
      s.requests += n.requests;
      s.in_vain += n.requests_in_vain;
      s.bytes += n.bytes;
    }
    s.of_first = c.counters(0).messages;
    s.between_machines = c.messages_between_machines();
  });
  return s;
}

/// `each`: how many seconds all bodies compute, for each process.
void report(const char* name, int processes, double each, const searched& s) {
  std::printf(
      "%s, %d processes: %.4f s, %.4f of them in bodies; messages of a process: %.0f on average, %llu at "
      "most, "
      "%llu of process 0; of all: tasks %llu, requests %llu, in vain %llu, bytes %llu; points %llu, switches "
      "%llu\n",
      name, processes, s.seconds, each / s.seconds, static_cast<double>(s.messages) / processes,
      static_cast<unsigned long long>(s.most), static_cast<unsigned long long>(s.of_first),
      static_cast<unsigned long long>(s.sent), static_cast<unsigned long long>(s.requests),
      static_cast<unsigned long long>(s.in_vain), static_cast<unsigned long long>(s.bytes),
      static_cast<unsigned long long>(s.passed.points), static_cast<unsigned long long>(s.passed.switches));
}

/// Of UTS: every node is a task, which computes for so many nanoseconds.
void visit(node n, int depth, double nanoseconds, sums c) {
  work(nanoseconds);
  const int children = n.height < depth ? children_of(weft_bench::t1, n) : 0;
  c += children == 0 ? weft_bench::one_leaf + weft_bench::one_node : weft_bench::one_node;
  for (int i = 0; i < children; ++i)
    weft::fork(visit, child_of(n, static_cast<unsigned>(i)), depth, nanoseconds, c);
}
/// The same without tasks.
long count(const node& n, int depth) {
  const int children = n.height < depth ? children_of(weft_bench::t1, n) : 0;
  if (children == 0) return weft_bench::one_leaf + weft_bench::one_node;
  long c = weft_bench::one_node;
  for (int i = 0; i < children; ++i) c += count(child_of(n, static_cast<unsigned>(i)), depth);
  return c;
}

/// T1 down to some depth, with bodies so long that each process computes for `each` seconds.
searched search_t1(int processes, double each, int depth, long counts,
                   const simulation::network_options& by = {}) {
  const double nanoseconds = each * 1e9 * processes / static_cast<double>(weft_bench::nodes_of(counts));
  return search(processes, by,
                [&](const sums& c) { weft::fork(visit, root_of(weft_bench::t1), depth, nanoseconds, c); });
}

constexpr long t1_nodes = 4'130'071, t1_leaves = 3'305'118;

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

/// Columns and diagonals that are attacked in the next row.
struct board {
  unsigned columns = 0, left = 0, right = 0;
  unsigned free(int n) const { return ((1u << n) - 1) & ~(columns | left | right); }
  board with(unsigned column) const {
    return {columns | column, (left | column) << 1, (right | column) >> 1};
  }
};
constexpr long one_solution = 1L << 40;

/// Solutions and boards below a board in row `row`, itself included.
long place(const board& b, int row, int n) {
  if (row == n) return one_solution + 1;
  long c = 1;
  for (unsigned free = b.free(n); free != 0; free &= free - 1) c += place(b.with(free & -free), row + 1, n);
  return c;
}
/// The same as tasks down to row `last`. A body computes for so many nanoseconds for each board.
void place_tasks(board b, int row, int last, int n, double nanoseconds, sums c) {
  const long counts = row == last ? place(b, row, n) : 1;
  work(static_cast<double>(counts % one_solution) * nanoseconds);
  c += counts;
  if (row == last) return;
  for (unsigned free = b.free(n); free != 0; free &= free - 1)
    weft::fork(place_tasks, b.with(free & -free), row + 1, last, n, nanoseconds, c);
}

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
  const long boards = place({}, 0, n) % one_solution;
  const double nanoseconds = each * 1e9 * processes / static_cast<double>(boards);
  const searched s = search(
      processes, {}, [&](const sums& c) { weft::fork(place_tasks, board(), 0, last, n, nanoseconds, c); });
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
    CHECK(share >= 0.5);
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
      CHECK(n.requests < 200);
      CHECK(n.messages < 500);
    }
  });
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
