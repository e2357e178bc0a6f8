// SPDX-License-Identifier: BSL-1.0
// What a partitioned step takes on a simulated network, against the same computation written by hand with
// messages.
#include "network.hpp"
#include "support/catch.hpp"

#include <weft/cluster/partition.hpp>
#include <weft/placement/etf.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

using simulation::time_here;
using simulation::work;

namespace {

// Livermore kernel 23: a grid is swept in place, row by row. Each point is replaced by a mean of itself and
// its neighbours, of which those above and to the left are already new. Blocks of points keep their outermost
// rows and columns a second time, for their neighbours.
constexpr int points = 16;               // along one side of a block
constexpr int side = 16, processes = 4;  // blocks along one side of the grid
constexpr int rows = side / processes;   // of blocks, of one process

using values = std::vector<double>;
enum edge { north, west, south, east };
struct block {
  values all;
  values edges[4];
};

double next_of(double here, double n, double w, double s, double e) {
  return here + 0.175 * (0.21 * n + 0.26 * w + 0.24 * s + 0.28 * e + 0.01 - here);
}
double first_of(int row, int column) { return (row * 7919 + column * 104'729) % 1'000 * 1e-3; }

void copy_edges(const values& all, values& n, values& w, values& s, values& e) {
  n.resize(points), w.resize(points), s.resize(points), e.resize(points);
  for (int i = 0; i < points; ++i) {
    n[i] = all[i];
    w[i] = all[i * points];
    s[i] = all[(points - 1) * points + i];
    e[i] = all[i * points + points - 1];
  }
}
/// One block, between the edges of its neighbours, for so many nanoseconds.
void sweep(double nanoseconds, const values& above, const values& before, const values& below,
           const values& behind, values& all, values& n, values& w, values& s, values& e) {
  work(nanoseconds);
  const auto at = [&](int r, int c) {
    return r < 0         ? above[c]
           : c < 0       ? before[r]
           : r == points ? below[c]
           : c == points ? behind[r]
                         : all[r * points + c];
  };
  for (int r = 0; r < points; ++r)
    for (int c = 0; c < points; ++c)
      all[r * points + c] = next_of(at(r, c), at(r - 1, c), at(r, c - 1), at(r + 1, c), at(r, c + 1));
  copy_edges(all, n, w, s, e);
}
values first_block(int row, int column) {
  values all;
  for (int r = 0; r < points; ++r)
    for (int c = 0; c < points; ++c) all.push_back(first_of(row * points + r, column * points + c));
  return all;
}
values zeros() { return values(points); }

/// The blocks of the whole grid, without blocks.
std::vector<values> serial(std::uint64_t steps) {
  constexpr int n = side * points;
  std::vector<double> g((n + 2) * (n + 2));
  const auto at = [&g](int r, int c) -> double& { return g[(r + 1) * (n + 2) + c + 1]; };
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) at(r, c) = first_of(r, c);
  for (std::uint64_t k = 0; k < steps; ++k)
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < n; ++c)
        at(r, c) = next_of(at(r, c), at(r - 1, c), at(r, c - 1), at(r + 1, c), at(r, c + 1));
  std::vector<values> all(side * side);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) all[r / points * side + c / points].push_back(at(r, c));
  return all;
}

/// In which order the blocks of a sweep are taken; the values are the same.
enum class order { by_rows, by_columns };
template <class F>
void for_blocks(order o, int first_row, int last_row, const F& f) {
  if (o == order::by_rows)
    for (int r = first_row; r < last_row; ++r)
      for (int c = 0; c < side; ++c) f(r, c);
  else
    for (int c = 0; c < side; ++c)
      for (int r = first_row; r < last_row; ++r) f(r, c);
}

struct measured {
  double seconds = 0;                     ///< from the first process that begins to the last one that ends
  std::uint64_t messages = 0, wrong = 0;  ///< wrong: values in any process
};
/// When processes began and ended.
struct stop_watch {
  std::uint64_t begun = UINT64_MAX, ended = 0;
  void begin() { begun = std::min(begun, time_here()); }
  void end() { ended = std::max(ended, time_here()); }
  double seconds() const { return static_cast<double>(ended - begun) / 1e9; }
};

/// A partitioned step.
measured partitioned(order o, double nanoseconds, std::uint64_t steps, const weft::partition_options& options,
                     const std::vector<values>& expected) {
  measured m;
  simulation::run_in_virtual_time([&] {
    simulation::cluster c(processes);
    stop_watch watch;
    c.each([&](simulation::cluster::process& here) {
      using weft::read, weft::update, weft::write, weft::borrow;
      std::vector<block> blocks(side * side);
      values rim = zeros();
      for_blocks(o, 0, side, [&](int r, int k) {
        block& b = blocks[r * side + k];
        b.all = first_block(r, k);
        copy_edges(b.all, b.edges[north], b.edges[west], b.edges[south], b.edges[east]);
      });
      const auto edge_of = [&](int r, int k, edge e) -> values& {
        return r < 0 || k < 0 || r == side || k == side ? rim : blocks[r * side + k].edges[e];
      };
      weft::partitioned step(
          here,
          [&] {
            for_blocks(o, 0, side, [&](int r, int k) {
              block& b = blocks[r * side + k];
              weft::fork(sweep, nanoseconds, read(borrow(edge_of(r - 1, k, south))),
                         read(borrow(edge_of(r, k - 1, east))), read(borrow(edge_of(r + 1, k, north))),
                         read(borrow(edge_of(r, k + 1, west))), update(borrow(b.all)),
                         write(borrow(b.edges[north])), write(borrow(b.edges[west])),
                         write(borrow(b.edges[south])), write(borrow(b.edges[east])));
            });
          },
          options);
      watch.begin();
      step.run(steps);
      watch.end();
      m.messages += step.counters().messages;
      for (std::size_t i = 0; i < blocks.size(); ++i) m.wrong += blocks[i].all != expected[i];
    });
    m.seconds = watch.seconds();
  });
  return m;
}

/// What one process of the program by hand sends: an edge; at the end, all its blocks.
struct letter {
  std::uint64_t step = 0;
  int row = 0, column = 0, what = 0;
  bool operator<(const letter& other) const {
    return std::tie(step, row, column, what) < std::tie(other.step, other.row, other.column, other.what);
  }
};
/// One process of it: sends an edge as soon as it is written, and receives one right before it is needed.
class by_hand {
 public:
  by_hand(simulation::network& of, int rank) : at_(of, rank), rank_(rank) {}

  void run(order o, double nanoseconds, std::uint64_t steps) {
    const int first = rank_ * rows, last = first + rows;
    for (int r = 0; r < side; ++r)
      for (int k = 0; k < side; ++k) {
        block& b = of_(r, k);
        b.all = first_block(r, k);
        copy_edges(b.all, b.edges[north], b.edges[west], b.edges[south], b.edges[east]);
      }
    for (std::uint64_t i = 0; i < steps; ++i)
      for_blocks(o, first, last, [&](int r, int k) {
        if (r == first && r > 0) edge_(r - 1, k, south) = receive_({i, r - 1, k, south});
        if (r + 1 == last && last < side && i > 0) edge_(last, k, north) = receive_({i - 1, last, k, north});
        block& b = of_(r, k);
        sweep(nanoseconds, edge_(r - 1, k, south), edge_(r, k - 1, east), edge_(r + 1, k, north),
              edge_(r, k + 1, west), b.all, b.edges[north], b.edges[west], b.edges[south], b.edges[east]);
        if (r + 1 == last && last < side) send_(rank_ + 1, {i, r, k, south}, b.edges[south]);
        if (r == first && r > 0 && i + 1 < steps) send_(rank_ - 1, {i, r, k, north}, b.edges[north]);
      });
    // As after a partitioned step, all have all.
    values own;
    for_blocks(o, first, last,
               [&](int r, int k) { own.insert(own.end(), of_(r, k).all.begin(), of_(r, k).all.end()); });
    for (int to = 0; to < processes; ++to)
      if (to != rank_) send_(to, {steps, rank_, 0, 4}, own);
    for (int from = 0; from < processes; ++from) {
      if (from == rank_) continue;
      const values all = receive_({steps, from, 0, 4});
      auto at = all.begin();
      for_blocks(o, from * rows, (from + 1) * rows, [&](int r, int k) {
        of_(r, k).all.assign(at, at + points * points);
        at += points * points;
      });
    }
  }
  std::uint64_t wrong(const std::vector<values>& expected) const {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) n += blocks_[i].all != expected[i];
    return n;
  }
  std::uint64_t messages() const noexcept { return messages_; }

 private:
  block& of_(int r, int k) { return blocks_[r * side + k]; }
  values& edge_(int r, int k, edge e) {
    return r < 0 || k < 0 || r == side || k == side ? rim_ : of_(r, k).edges[e];
  }
  void send_(int to, const letter& l, const values& v) {
    weft::remote::writer w;
    w(l.step, l.row, l.column, l.what, v);
    at_.send(to, std::move(w.bytes()));
    ++messages_;
  }
  values receive_(const letter& wanted) {
    for (;;) {
      if (const auto found = come_.find(wanted); found != come_.end()) {
        values v = std::move(found->second);
        come_.erase(found);
        return v;
      }
      weft::remote::bytes message;
      if (at_.receive(message) < 0) {
        at_.wait(std::chrono::seconds(1));
        continue;
      }
      weft::remote::reader r{std::span<const std::byte>(message)};
      letter l;
      values v;
      r(l.step, l.row, l.column, l.what, v);
      come_.emplace(l, std::move(v));
    }
  }

  simulation::network_transport at_;
  const int rank_;
  std::vector<block> blocks_ = std::vector<block>(side * side);
  values rim_ = zeros();
  std::map<letter, values> come_;
  std::uint64_t messages_ = 0;
};
measured messages_by_hand(order o, double nanoseconds, std::uint64_t steps,
                          const std::vector<values>& expected) {
  measured m;
  simulation::run_in_virtual_time([&] {
    simulation::network by(processes, {});
    stop_watch watch;
    std::vector<weft::base::thread> all;
    for (int i = 0; i < processes; ++i)
      all.emplace_back([&, i] {
        by_hand here(by, i);
        watch.begin();
        here.run(o, nanoseconds, steps);
        watch.end();
        m.messages += here.messages();
        m.wrong += here.wrong(expected);
      });
    for (auto& t : all) t.join();
    m.seconds = watch.seconds();
  });
  return m;
}

/// Rows of blocks to processes, as by hand: each task where the block is that it updates.
weft::placement::schedule by_rows(order o, const weft::placement::task_graph& g,
                                  const weft::placement::machine& m) {
  std::vector<unsigned> on;
  for_blocks(o, 0, side, [&](int r, int) { on.push_back(static_cast<unsigned>(r / rows)); });
  return weft::placement::list_schedule(g, m, std::move(on));
}

}  // namespace

TEST_CASE("a partitioned step takes as long as the same with messages by hand") {
  struct program {
    const char* name;
    order taken;
    weft::placement::method place;
    bool against_the_best;  // else against the one by hand in the same order
  };
  const program programs[] = {
      {"by columns, owners by rows", order::by_columns,
       [](const auto& g, const auto& m) { return by_rows(order::by_columns, g, m); }, true},
      {"by columns, etf", order::by_columns, weft::placement::etf, true},
      {"by rows, owner_computes", order::by_rows, weft::placement::owner_computes, false},
  };
  constexpr std::uint64_t steps = 100;
  const std::vector<values> expected = serial(steps);
  for (const double microseconds : {50, 200}) {
    const double ns = microseconds * 1e3;
    const measured rows_first = messages_by_hand(order::by_rows, ns, steps, expected);
    const measured columns_first = messages_by_hand(order::by_columns, ns, steps, expected);
    const double best = std::min(rows_first.seconds, columns_first.seconds);
    CHECK(rows_first.wrong + columns_first.wrong == 0);
    std::printf("LK23, %llu steps, %d blocks of %.0f us on each of %d processes; bodies %.4f s\n",
                static_cast<unsigned long long>(steps), rows * side, microseconds, processes,
                ns * 1e-9 * rows * side * steps);
    std::printf("  by hand: by rows %.4f s, by columns %.4f s, messages %llu\n", rows_first.seconds,
                columns_first.seconds, static_cast<unsigned long long>(columns_first.messages));
    for (const program& p : programs) {
      const measured m = partitioned(p.taken, ns, steps, {.method = p.place}, expected);
      const double same_order = p.taken == order::by_rows ? rows_first.seconds : columns_first.seconds;
      std::printf(
          "  partitioned, %s: %.4f s, messages %llu; partitioned / by hand in the same order %.3f, "
          "in the better one %.3f\n",
          p.name, m.seconds, static_cast<unsigned long long>(m.messages), m.seconds / same_order,
          m.seconds / best);
      INFO(p.name << ", " << microseconds << " us");
      CHECK(m.wrong == 0);
      CHECK(m.messages > columns_first.messages);
      CHECK(m.seconds / (p.against_the_best ? best : same_order) <= 1.05);
    }
  }
}

TEST_CASE("a partitioned step takes the same virtual time each time") {
  const auto place = [](const auto& g, const auto& m) { return by_rows(order::by_columns, g, m); };
  const std::vector<values> expected = serial(10);
  const auto once = [&] { return partitioned(order::by_columns, 20e3, 10, {.method = place}, expected); };
  const measured one = once(), two = once();
  CHECK(one.seconds == two.seconds);
  CHECK(one.messages == two.messages);
}
