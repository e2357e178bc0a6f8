// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 with weft: blocks as tasks, as an overlay of ordered locks with whole blocks or with
// frontiers as locations, and chained sweeps in vectors.
#pragma once

#include "grid.hpp"

#include <weft/orwl.hpp>
#include <weft/wavefront.hpp>
#include <weft/weft.hpp>

#include <deque>

namespace lk23 {

/// The grid cut into blocks of b x b points, the last ones smaller. Blocks 0 and rows + 1, and so on, are
/// border.
struct blocks {
  long size, rows, columns, last_row, last_column;

  blocks(const grid& g, long b)
      : size(b),
        rows((g.rows + b - 1) / b),
        columns((g.columns + b - 1) / b),
        last_row(g.rows + 1),
        last_column(g.columns + 1) {}
  std::size_t at(long i, long j) const { return static_cast<std::size_t>(i * (columns + 2) + j); }
  std::size_t count() const { return static_cast<std::size_t>((rows + 2) * (columns + 2)); }
  long row(long i) const { return std::min(1 + (i - 1) * size, last_row); }
  long column(long j) const { return std::min(1 + (j - 1) * size, last_column); }
  void sweep(grid& g, long i, long j) const { plain_block(g, row(i), row(i + 1), column(j), column(j + 1)); }
};

/// A task per block and sweep, ordered by what it reads and updates.
inline void by_data_flow(weft::runtime& rt, grid& g, long sweeps, long block,
                         const weft::run_options& options = {}) {
  const blocks b(g, block);
  std::vector<char> token(b.count());
  rt.run(options, [&] {
    using weft::borrow, weft::read, weft::update;
    for (long s = 0; s < sweeps; ++s)
      for (long i = 1; i <= b.rows; ++i)
        for (long j = 1; j <= b.columns; ++j)
          weft::fork(
              [&g, &b, i, j](char&, const char&, const char&, const char&, const char&) { b.sweep(g, i, j); },
              update(borrow(token[b.at(i, j)])), read(borrow(token[b.at(i - 1, j)])),
              read(borrow(token[b.at(i, j - 1)])), read(borrow(token[b.at(i + 1, j)])),
              read(borrow(token[b.at(i, j + 1)])));
  });
}

/// A block with a border of its own, and where it lies in the grid.
struct part {
  long r0, r1, c0, c1;
  grid own;

  /// Block (i, j), with its values and coefficients; border blocks are one point wide.
  part(const grid& g, const blocks& b, long i, long j)
      : r0(i == 0 ? 0 : b.row(i)),
        r1(i == 0 || i > b.rows ? r0 + 1 : b.row(i + 1)),
        c0(j == 0 ? 0 : b.column(j)),
        c1(j == 0 || j > b.columns ? c0 + 1 : b.column(j + 1)),
        own(r1 - r0, c1 - c0) {
    for (long r = r0; r < r1; ++r)
      for (long c = c0; c < c1; ++c) {
        const std::size_t from = g.at(r, c), to = own.at(r - r0 + 1, c - c0 + 1);
        own.za[to] = g.za[from];
        own.zr[to] = g.zr[from];
        own.zb[to] = g.zb[from];
        own.zu[to] = g.zu[from];
        own.zv[to] = g.zv[from];
        own.zz[to] = g.zz[from];
      }
  }
  void store(grid& g) const {
    for (long r = r0; r < r1; ++r)
      for (long c = c0; c < c1; ++c) g.za[g.at(r, c)] = own.za[own.at(r - r0 + 1, c - c0 + 1)];
  }
};

enum side { north, west, south, east };

/// The places of an edge of a block, or of its border beyond that edge.
struct edge_of {
  std::size_t begin, step, count;
  edge_of(const grid& g, side s, bool beyond) {
    const bool along = s == north || s == south;
    const long row = s == north ? (beyond ? 0 : 1) : s == south ? g.rows + beyond : 1;
    const long column = s == west ? (beyond ? 0 : 1) : s == east ? g.columns + beyond : 1;
    begin = g.at(row, column);
    step = along ? 1 : static_cast<std::size_t>(g.width());
    count = static_cast<std::size_t>(along ? g.columns : g.rows);
  }
};

/// Copies the edge of a neighbour on side `s` to the border there.
inline void take_edge(grid& mine, side s, const grid& theirs) {
  const side opposite[] = {south, east, north, west};
  const edge_of to(mine, s, true), from(theirs, opposite[s], false);
  for (std::size_t k = 0; k < to.count; ++k)
    mine.za[to.begin + k * to.step] = theirs.za[from.begin + k * from.step];
}

/// An overlay whose locations are the blocks: each is written by its task and read by its four neighbours.
/// Posted row by row, a block stands behind its northern and western neighbours and before the others.
class block_overlay {
 public:
  block_overlay(const grid& g, long block) {
    const blocks b(g, block);
    for (long i = 0; i <= b.rows + 1; ++i)
      for (long j = 0; j <= b.columns + 1; ++j) where_.emplace_back(g, b, i, j);
    using weft::orwl::read, weft::orwl::write;
    for (long i = 1; i <= b.rows; ++i)
      for (long j = 1; j <= b.columns; ++j)
        overlay_.task(
            {.name = "block"},
            [](part& mine, const part& above, const part& left, const part& below, const part& right) {
              take_edge(mine.own, north, above.own);
              take_edge(mine.own, west, left.own);
              take_edge(mine.own, south, below.own);
              take_edge(mine.own, east, right.own);
              plain(mine.own, 1);
            },
            write(where_[b.at(i, j)]), read(where_[b.at(i - 1, j)]), read(where_[b.at(i, j - 1)]),
            read(where_[b.at(i + 1, j)]), read(where_[b.at(i, j + 1)]));
    overlay_.schedule();
  }
  block_overlay(const block_overlay&) = delete;
  block_overlay& operator=(const block_overlay&) = delete;

  void run(weft::runtime& rt, long sweeps) { overlay_.run(rt, static_cast<std::uint64_t>(sweeps)); }
  void store(grid& g) const {
    for (const auto& l : where_) l.get().store(g);
  }
  weft::orwl::overlay& tasks() { return overlay_; }

 private:
  std::deque<weft::orwl::location<part>> where_;
  weft::orwl::overlay overlay_;
};

/// An overlay in canonical form: besides its block every task owns four frontiers, copies of its edges that
/// helpers make after each sweep. Blocks read only frontiers, so neighbours compute at the same time.
class frontier_overlay {
  using edge = std::vector<double>;
  using place = weft::orwl::location<edge>;

 public:
  frontier_overlay(const grid& g, long block) : blocks_(g, block) {
    const blocks& b = blocks_;
    static constexpr side sides[] = {north, west, south, east};
    for (long i = 0; i <= b.rows + 1; ++i)
      for (long j = 0; j <= b.columns + 1; ++j) {
        const part& p = where_.emplace_back(g, b, i, j).get();
        for (const side s : sides) export_edge(p.own, s, frontier_.emplace_back().get());
      }
    using weft::orwl::read, weft::orwl::write;
    for (long i = 1; i <= b.rows; ++i)
      for (long j = 1; j <= b.columns; ++j) {
        auto& mine = where_[b.at(i, j)];
        overlay_.task(
            {.name = "block"},
            [](part& p, const edge& above, const edge& left, const edge& below, const edge& right) {
              const edge* const all[] = {&above, &left, &below, &right};
              for (const side s : sides) {
                const edge_of to(p.own, s, true);
                for (std::size_t k = 0; k < to.count; ++k) p.own.za[to.begin + k * to.step] = (*all[s])[k];
              }
              plain(p.own, 1);
            },
            write(mine), read(of(i - 1, j, south)), read(of(i, j - 1, east)), read(of(i + 1, j, north)),
            read(of(i, j + 1, west)));
        for (const side s : sides)
          overlay_.task(
              {.name = "frontier"}, [s](edge& e, const part& p) { export_edge(p.own, s, e); },
              write(of(i, j, s)), read(mine));
      }
    overlay_.schedule();
  }
  frontier_overlay(const frontier_overlay&) = delete;
  frontier_overlay& operator=(const frontier_overlay&) = delete;

  void run(weft::runtime& rt, long sweeps) { overlay_.run(rt, static_cast<std::uint64_t>(sweeps)); }
  void store(grid& g) const {
    for (const auto& l : where_) l.get().store(g);
  }
  weft::orwl::overlay& tasks() { return overlay_; }

 private:
  place& of(long i, long j, side s) { return frontier_[4 * blocks_.at(i, j) + s]; }
  static void export_edge(const grid& o, side s, edge& e) {
    const edge_of from(o, s, false);
    e.resize(from.count);
    for (std::size_t k = 0; k < from.count; ++k) e[k] = o.za[from.begin + k * from.step];
  }

  blocks blocks_;
  std::deque<weft::orwl::location<part>> where_;
  std::deque<place> frontier_;
  weft::orwl::overlay overlay_;
};

/// The kernel on vectors of points.
struct kernel {
  template <class V, class Fields>
  V operator()(const V& north, const V& west, const V& centre, const V& east, const V& south,
               const Fields& z) const {
    return point<V>(north, west, centre, east, south, z[0], z[1], z[2], z[3], z[4]);
  }
};

/// The tuned form: sweeps chained in tiles, in the skewed layout.
template <int Lanes = weft::wavefront::native_lanes<double>>
class chained {
 public:
  explicit chained(const grid& g)
      : skewed_(static_cast<std::size_t>(g.rows), static_cast<std::size_t>(g.columns)) {
    for (long r = 0; r <= g.rows + 1; ++r)
      for (long c = 0; c <= g.columns + 1; ++c) {
        const bool outside = r == 0 || r > g.rows, beside = c == 0 || c > g.columns;
        if (outside && beside) continue;  // corners are nobody's neighbours
        const auto row = static_cast<std::size_t>(r), column = static_cast<std::size_t>(c);
        const std::size_t i = g.at(r, c);
        skewed_.set(row, column, g.za[i]);
        if (outside || beside) continue;
        const double fields[] = {g.zr[i], g.zb[i], g.zu[i], g.zv[i], g.zz[i]};
        for (std::size_t f = 0; f < 5; ++f) skewed_.set_field(f, row, column, fields[f]);
      }
  }
  void run(weft::runtime& rt, long sweeps, const weft::wavefront::sweep_options& o = {}) {
    weft::wavefront::sweep(rt, skewed_, static_cast<std::size_t>(sweeps), kernel{}, o);
  }
  /// The same tiles in a plain loop on the calling thread.
  void run_alone(long sweeps, const weft::wavefront::sweep_options& o = {}) {
    weft::wavefront::sweep(skewed_, static_cast<std::size_t>(sweeps), kernel{}, o);
  }
  auto& data() { return skewed_; }
  void store(grid& g) const {
    for (long r = 1; r <= g.rows; ++r)
      for (long c = 1; c <= g.columns; ++c)
        g.za[g.at(r, c)] = skewed_.get(static_cast<std::size_t>(r), static_cast<std::size_t>(c));
  }

 private:
  weft::wavefront::skewed_grid<double, 5, Lanes> skewed_;
};

}  // namespace lk23
