// SPDX-License-Identifier: BSL-1.0
// Searches by the processes of a simulated cluster: the tree T1 of UTS, and the N-queens problem.
#pragma once

#include "network.hpp"
#include "uts/config.hpp"
#include "virtual_time.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

template <>
inline constexpr bool weft::remote::travels_as_bytes<weft_bench::node> = true;

namespace simulation {

using weft_bench::node;
using sums = weft::reduce<long, std::plus<>>;

inline weft::cluster_options one_worker() {
  return {.runtime = {.workers = 1, .spin = std::chrono::microseconds(10)}};
}

/// What a program has counted, how long it took, and what its processes have exchanged.
struct searched {
  long counts = 0;
  double seconds = 0;
  std::uint64_t messages = 0, most = 0, of_first = 0, sent = 0, received = 0;
  std::uint64_t requests = 0, in_vain = 0, lifelines = 0, pushed = 0, bytes = 0, between_machines = 0;
  simulation::passed passed{};
};

/// Runs a search, whose tasks add to a sum.
template <class Search>
searched search(int processes, const network_options& by, Search fork) {
  searched s;
  s.passed = run_in_virtual_time([&] {
    cluster c(processes, one_worker(), by);
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
      s.lifelines += n.lifelines;
      s.pushed += n.closures_pushed;
      s.bytes += n.bytes;
    }
    s.of_first = c.counters(0).messages;
    s.between_machines = c.messages_between_machines();
  });
  return s;
}

/// Of UTS: every node is a task, which computes for so many nanoseconds.
inline void visit(node n, int depth, double nanoseconds, sums c) {
  work(nanoseconds);
  const int children = n.height < depth ? children_of(weft_bench::t1, n) : 0;
  c += children == 0 ? weft_bench::one_leaf + weft_bench::one_node : weft_bench::one_node;
  for (int i = 0; i < children; ++i)
    weft::fork(visit, child_of(n, static_cast<unsigned>(i)), depth, nanoseconds, c);
}
/// The same without tasks.
inline long count(const node& n, int depth) {
  const int children = n.height < depth ? children_of(weft_bench::t1, n) : 0;
  if (children == 0) return weft_bench::one_leaf + weft_bench::one_node;
  long c = weft_bench::one_node;
  for (int i = 0; i < children; ++i) c += count(child_of(n, static_cast<unsigned>(i)), depth);
  return c;
}

/// T1 down to some depth, with bodies so long that each process computes for `each` seconds.
inline searched search_t1(int processes, double each, int depth, long counts,
                          const network_options& by = {}) {
  const double nanoseconds = each * 1e9 * processes / static_cast<double>(weft_bench::nodes_of(counts));
  return search(processes, by,
                [&](const sums& c) { weft::fork(visit, root_of(weft_bench::t1), depth, nanoseconds, c); });
}

inline constexpr long t1_nodes = 4'130'071, t1_leaves = 3'305'118;

/// Columns and diagonals that are attacked in the next row.
struct board {
  unsigned columns = 0, left = 0, right = 0;
  unsigned free(int n) const { return ((1u << n) - 1) & ~(columns | left | right); }
  board with(unsigned column) const {
    return {columns | column, (left | column) << 1, (right | column) >> 1};
  }
};
inline constexpr long one_solution = 1L << 40;

/// Solutions and boards below a board in row `row`, itself included.
inline long place(const board& b, int row, int n) {
  if (row == n) return one_solution + 1;
  long c = 1;
  for (unsigned free = b.free(n); free != 0; free &= free - 1) c += place(b.with(free & -free), row + 1, n);
  return c;
}
/// The same as tasks down to row `last`. A body computes for so many nanoseconds for each board.
inline void place_tasks(board b, int row, int last, int n, double nanoseconds, sums c) {
  const long counts = row == last ? place(b, row, n) : 1;
  work(static_cast<double>(counts % one_solution) * nanoseconds);
  c += counts;
  if (row == last) return;
  for (unsigned free = b.free(n); free != 0; free &= free - 1)
    weft::fork(place_tasks, b.with(free & -free), row + 1, last, n, nanoseconds, c);
}

/// N-queens with tasks down to row `last`, with bodies so long that each process computes for `each` seconds.
inline searched search_queens(int processes, double each, int n, int last, const network_options& by = {}) {
  const long boards = place({}, 0, n) % one_solution;
  const double nanoseconds = each * 1e9 * processes / static_cast<double>(boards);
  return search(processes, by,
                [&](const sums& c) { weft::fork(place_tasks, board(), 0, last, n, nanoseconds, c); });
}

}  // namespace simulation
