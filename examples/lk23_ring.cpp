// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 on a ring of processes: the rows of blocks go round, and each block hands its edges on.
// usage: mpiexec -n P lk23_ring [edge] [sweeps] [edge of a block] [turns]
// Compares every bit with the plain loops, and the time with theirs: medians of the turns.
#include "lk23.hpp"

#include <weft/cluster.hpp>
#include <weft/cluster/partition.hpp>
#include <weft/placement/owner_computes.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

namespace {

using edge = std::vector<double>;

/// Values, and five coefficients for each of them, with a border of one point around `rows` x `columns`.
struct grid {
  std::size_t rows, columns;
  std::vector<double> values, coefficients;

  grid(std::size_t r, std::size_t c)
      : rows(r), columns(c), values((r + 2) * (c + 2)), coefficients(5 * values.size()) {}
  std::size_t at(std::size_t row, std::size_t column) const { return row * (columns + 2) + column; }
};

void fill(grid& g) {
  for (std::size_t r = 0; r < g.rows + 2; ++r)
    for (std::size_t c = 0; c < g.columns + 2; ++c) {
      g.values[g.at(r, c)] = lk23::value(r, c, 0);
      for (int i = 0; i < 5; ++i)
        g.coefficients[5 * g.at(r, c) + static_cast<std::size_t>(i)] = lk23::value(r, c, 1 + i);
    }
}

/// The plain loops: one sweep in place.
void sweep(std::vector<double>& values, const grid& g) {
  const auto width = static_cast<std::ptrdiff_t>(g.columns + 2);
  for (std::size_t r = 1; r <= g.rows; ++r)
    for (std::size_t c = 1; c <= g.columns; ++c) {
      double* const v = &values[g.at(r, c)];
      *v = lk23::kernel{}(v[-width], v[-1], v[0], v[1], v[width], &g.coefficients[5 * g.at(r, c)]);
    }
}

enum side : std::size_t { north, west, south, east };
constexpr std::array<side, 4> sides{north, west, south, east};

/// The edge of a block on one side, or the border beyond it.
struct line {
  std::size_t first, step, count;
  line(const grid& g, side s, bool beyond) {
    const bool across = s == north || s == south;
    first = s == north   ? g.at(beyond ? 0 : 1, 1)
            : s == west  ? g.at(1, beyond ? 0 : 1)
            : s == south ? g.at(g.rows + beyond, 1)
                         : g.at(1, g.columns + beyond);
    step = across ? 1 : g.columns + 2;
    count = across ? g.columns : g.rows;
  }
};
void take(const edge& from, std::vector<double>& values, const line& l) {
  for (std::size_t i = 0; i < l.count; ++i) values[l.first + i * l.step] = from[i];
}
edge copy(const std::vector<double>& values, const line& l) {
  edge e(l.count);
  for (std::size_t i = 0; i < l.count; ++i) e[i] = values[l.first + i * l.step];
  return e;
}

/// The grid in blocks, each with a border of its own. Block (i, j) is numbered from 1; 0 and the last ones
/// stand for the border of the grid, of which they only have the edge.
class blocks {
 public:
  blocks(const grid& whole, std::size_t size)
      : down_((whole.rows + size - 1) / size), across_((whole.columns + size - 1) / size) {
    for (std::size_t i = 1; i <= down_; ++i)
      for (std::size_t j = 1; j <= across_; ++j) {
        const std::size_t row = (i - 1) * size, column = (j - 1) * size;
        grid b(std::min(size, whole.rows - row), std::min(size, whole.columns - column));
        copy_between_(whole, row, column, b, [](const grid& from, std::size_t f, grid& to, std::size_t t) {
          to.values[t] = from.values[f];
          std::copy_n(&from.coefficients[5 * f], 5, &to.coefficients[5 * t]);
        });
        blocks_.push_back(std::move(b));
      }
    edges_.resize(4 * (down_ + 2) * (across_ + 2));
    for (std::size_t i = 1; i <= down_; ++i)
      for (std::size_t j = 1; j <= across_; ++j)
        for (const side s : sides) {
          const grid& b = block_(i, j);
          edge_(i, j, s) = copy(b.values, line(b, s, false));
          // What lies beyond is the edge of a neighbour, which has it, too, or nobody changes it.
          neighbour_(i, j, s) = copy(b.values, line(b, s, true));
        }
  }

  /// One sweep: a task for each block, which reads the edges of its neighbours and writes its own ones.
  /// Those to the north and west have been swept before it, as in the plain loops, the others have not.
  void fork_sweep() {
    using weft::borrow, weft::read, weft::update, weft::write;
    for (std::size_t j = 1; j <= across_; ++j)  // column by column: so other processes soon get their edges
      for (std::size_t i = 1; i <= down_; ++i)
        weft::fork(
            [b = &block_(i, j)](std::vector<double>& values, const edge& from_north, const edge& from_west,
                                const edge& from_south, const edge& from_east, edge& to_north, edge& to_west,
                                edge& to_south, edge& to_east) {
              const std::array<const edge*, 4> from{&from_north, &from_west, &from_south, &from_east};
              const std::array<edge*, 4> to{&to_north, &to_west, &to_south, &to_east};
              for (const side s : sides) take(*from[s], values, line(*b, s, true));
              sweep(values, *b);
              for (const side s : sides) *to[s] = copy(values, line(*b, s, false));
            },
            update(borrow(block_(i, j).values)), read(borrow(neighbour_(i, j, north))),
            read(borrow(neighbour_(i, j, west))), read(borrow(neighbour_(i, j, south))),
            read(borrow(neighbour_(i, j, east))), write(borrow(edge_(i, j, north))),
            write(borrow(edge_(i, j, west))), write(borrow(edge_(i, j, south))),
            write(borrow(edge_(i, j, east))));
  }
  /// Where each task is executed: row i of blocks in process i, round and round.
  weft::placement::schedule place(const weft::placement::task_graph& g,
                                  const weft::placement::machine& m) const {
    const std::vector<std::uint32_t> home = weft::placement::home_data(g);
    std::vector<unsigned> owner(g.bytes.size());
    for (std::size_t t = 0; t < home.size(); ++t)
      owner[home[t]] = static_cast<unsigned>(t % down_) % m.processors;
    return weft::placement::place_by_owner(g, m, owner);
  }
  /// Whether the values are those of a whole grid.
  bool equal(const grid& whole) const {
    bool same = true;
    for (std::size_t i = 1; i <= down_; ++i)
      for (std::size_t j = 1; j <= across_; ++j) {
        const grid &first = blocks_.front(), &b = block_(i, j);
        for (std::size_t r = 1; r <= b.rows; ++r)
          same = same &&
                 std::memcmp(&b.values[b.at(r, 1)],
                             &whole.values[whole.at((i - 1) * first.rows + r, (j - 1) * first.columns + 1)],
                             b.columns * sizeof(double)) == 0;
      }
    return same;
  }

 private:
  static void copy_between_(const grid& whole, std::size_t row, std::size_t column, grid& b,
                            auto copy_point) {
    for (std::size_t r = 0; r < b.rows + 2; ++r)
      for (std::size_t c = 0; c < b.columns + 2; ++c)
        copy_point(whole, whole.at(row + r, column + c), b, b.at(r, c));
  }
  grid& block_(std::size_t i, std::size_t j) { return blocks_[(i - 1) * across_ + j - 1]; }
  const grid& block_(std::size_t i, std::size_t j) const { return blocks_[(i - 1) * across_ + j - 1]; }
  edge& edge_(std::size_t i, std::size_t j, side s) { return edges_[4 * (i * (across_ + 2) + j) + s]; }
  /// The edge of the neighbour on side `s` that lies at this block.
  edge& neighbour_(std::size_t i, std::size_t j, side s) {
    switch (s) {
      case north:
        return edge_(i - 1, j, south);
      case west:
        return edge_(i, j - 1, east);
      case south:
        return edge_(i + 1, j, north);
      default:
        return edge_(i, j + 1, west);
    }
  }

  std::size_t down_, across_;
  std::vector<grid> blocks_;
  std::vector<edge> edges_;
};

double seconds_of(auto work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median_of(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  weft::cluster c(argc, argv, {.runtime = {.workers = 1}});
  const auto argument = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : otherwise;
  };
  const std::size_t size = argument(1, 1000), sweeps = argument(2, 20), block = argument(3, 125),
                    turns = argument(4, 1);
  if (size == 0 || block == 0 || turns == 0)
    throw std::invalid_argument("lk23_ring: edges and turns are at least 1");

  std::vector<double> alone, together;
  bool same = true;
  std::uint64_t messages = 0;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    grid whole(size, size);
    fill(whole);
    blocks ring(whole, block);
    weft::partitioned step(
        c, [&] { ring.fork_sweep(); },
        {.method = [&](const auto& graph, const auto& machine) { return ring.place(graph, machine); },
         .threshold = 1});
    // The plain loops are for one process, while the others wait.
    c.run([&] {
      alone.push_back(seconds_of([&] {
        for (std::size_t k = 0; k < sweeps; ++k) sweep(whole.values, whole);
      }));
    });
    together.push_back(seconds_of([&] { step.run(sweeps); }));  // now all processes have all blocks
    messages += step.counters().messages;
    if (c.rank() == 0) same = same && ring.equal(whole);
  }
  same = c.run([same] { return same; });
  if (c.rank() == 0) {
    std::printf("%zu x %zu points, %zu sweeps, %d processes: %.4f s, plain loops %.4f s, plain / ring %.2f\n",
                size, size, sweeps, c.size(), median_of(together), median_of(alone),
                median_of(alone) / median_of(together));
    std::printf("edges went round: %s; every bit as in the plain loops: %s\n",
                messages > 2 * turns * sweeps ? "yes" : "no", same ? "yes" : "NO");
  }
  return same ? 0 : 1;
}
