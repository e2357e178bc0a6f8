// SPDX-License-Identifier: BSL-1.0
// Third station: Livermore kernel 23, an implicit sweep over a plane, as a grid of block tasks over several
// sweeps.
//
// Built without contraction to fused multiply-add: the published sums, and equality bit by bit, are about
// this order of operations and no other.
#include "tour.hpp"

#include <weft/wavefront.hpp>

#include <cstdio>
#include <cstring>
#include <optional>

namespace tour {

namespace {

/// The plane za and its coefficients, row by row. The outermost rows and columns are never changed.
struct plane {
  int rows = 0;
  int columns = 0;
  std::vector<double> za, zb, zr, zu, zv, zz;

  plane(int r, int c) : rows(r), columns(c) {
    for (std::vector<double>* v : {&za, &zb, &zr, &zu, &zv, &zz})
      v->assign(std::size_t(r) * std::size_t(c), 0.0);
  }
};

inline void relax_point(plane& p, std::size_t at) {
  const std::size_t row = std::size_t(p.columns);
  double* const za = p.za.data();
  const double qa = za[at + row] * p.zr[at] + za[at - row] * p.zb[at] + za[at + 1] * p.zu[at] +
                    za[at - 1] * p.zv[at] + p.zz[at];
  za[at] += 0.175 * (qa - za[at]);
}

/// The plain loop.
[[gnu::noinline]] void serial_sweeps(plane& p, int sweeps) {
  for (int s = 0; s < sweeps; ++s)
    for (int j = 1; j < p.rows - 1; ++j)
      for (int k = 1; k < p.columns - 1; ++k)
        relax_point(p, std::size_t(j) * std::size_t(p.columns) + std::size_t(k));
}

/// Part of the plane, and the object that stands for it: a task that updates the block has the right to its
/// points.
struct block {
  int first_row = 0;
  int end_row = 0;
  int first_column = 0;
  int end_column = 0;
};

void relax_block(plane* p, weft::update<block> mine, weft::read<block>, weft::read<block>, weft::read<block>,
                 weft::read<block>) {
  for (int j = mine->first_row; j < mine->end_row; ++j)
    for (int k = mine->first_column; k < mine->end_column; ++k)
      relax_point(*p, std::size_t(j) * std::size_t(p->columns) + std::size_t(k));
}

/// The inner points cut into down x across blocks.
class blocks {
 public:
  blocks(const plane& p, int down, int across) : down_(down), across_(across) {
    for (int i = 0; i < down; ++i)
      for (int j = 0; j < across; ++j)
        all_.push_back({cut(p.rows, i, down), cut(p.rows, i + 1, down), cut(p.columns, j, across),
                        cut(p.columns, j + 1, across)});
  }

  /// Forks all sweeps in the order of the plain loop. Then north and west have the values of this sweep and
  /// south and east those of the last one, because that is what the tasks before in this order have written.
  void fork_sweeps(plane& p, int sweeps) {
    for (int s = 0; s < sweeps; ++s)
      for (int i = 0; i < down_; ++i)
        for (int j = 0; j < across_; ++j)
          weft::fork(relax_block, &p, weft::update(at(i, j)), weft::read(at(i - 1, j)),
                     weft::read(at(i, j - 1)), weft::read(at(i, j + 1)), weft::read(at(i + 1, j)));
  }

 private:
  static int cut(int extent, int part, int parts) { return 1 + (extent - 2) * part / parts; }

  /// Outside the plane: an object that nobody writes.
  weft::borrowed<block> at(int i, int j) {
    const bool inside = i >= 0 && i < down_ && j >= 0 && j < across_;
    return weft::borrow(inside ? all_[std::size_t(i) * std::size_t(across_) + std::size_t(j)] : border_);
  }

  int down_;
  int across_;
  std::vector<block> all_;
  block border_;
};

/// The same plane in the skewed layout, for vectors and chained sweeps.
class skewed_plane {
 public:
  explicit skewed_plane(const plane& p) : grid_(std::size_t(p.rows) - 2, std::size_t(p.columns) - 2) {
    for_each_point(p, [&](std::size_t row, std::size_t column, std::size_t at, bool inside) {
      grid_.set(row, column, p.za[at]);
      const double fields[] = {p.zr[at], p.zb[at], p.zu[at], p.zv[at], p.zz[at]};
      for (std::size_t f = 0; inside && f < 5; ++f) grid_.set_field(f, row, column, fields[f]);
    });
  }
  void sweep(weft::runtime& rt, int sweeps) {
    weft::wavefront::sweep(rt, grid_, std::size_t(sweeps),
                           [](const auto& north, const auto& west, const auto& centre, const auto& east,
                              const auto& south, const auto& z) {
                             const auto qa = south * z[0] + north * z[1] + east * z[2] + west * z[3] + z[4];
                             return centre + 0.175 * (qa - centre);
                           });
  }
  /// How many tiles sweep() makes of that.
  std::uint64_t tiles(std::size_t sweeps) const {
    const weft::wavefront::sweep_options o;
    const auto& s = grid_.shape();
    const std::size_t times = s.last() + std::size_t(grid_.lanes) * (s.strips() - 1) + 2 * (sweeps - 1);
    return ((s.strips() + sweeps - 1 + o.diagonals - 1) / o.diagonals) *
           ((times + o.positions - 1) / o.positions);
  }
  void store(plane& p) const {
    for_each_point(p, [&](std::size_t row, std::size_t column, std::size_t at, bool) {
      p.za[at] = grid_.get(row, column);
    });
  }

 private:
  /// All points but the corners, which are nobody's neighbours.
  template <class F>
  static void for_each_point(const plane& p, F f) {
    const auto rows = std::size_t(p.rows), columns = std::size_t(p.columns);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        const bool outside = row == 0 || row + 1 == rows, beside = column == 0 || column + 1 == columns;
        if (!outside || !beside) f(row, column, row * columns + column, !outside && !beside);
      }
  }
  weft::wavefront::skewed_grid<double, 5> grid_;
};

/// The data of the Livermore loops for this kernel: 9 planes of 7 x 101 values out of one long sequence.
plane official_plane() {
  constexpr int rows = 7;
  constexpr int columns = 101;
  constexpr std::size_t points = std::size_t(rows) * columns;
  constexpr std::size_t before = 12451;  // values of the sequence that belong to other kernels
  std::vector<double> sequence(before + 9 * points);
  double fuzz = 0.0012345;
  double buzz = 1.0 + fuzz;
  const double fizz = 1.1 * fuzz;
  for (double& v : sequence) {
    buzz = (1.0 - fuzz) * buzz + fuzz;
    fuzz = -fuzz;
    v = (buzz - fizz) * 0.1;
  }
  plane p(rows, columns);
  // In the sequence: za zp zq zr zm zb zu zv zz.
  std::vector<double>* const order[] = {&p.za, nullptr, nullptr, &p.zr, nullptr, &p.zb, &p.zu, &p.zv, &p.zz};
  std::size_t from = before;
  for (std::vector<double>* v : order) {
    if (v != nullptr) std::memcpy(v->data(), sequence.data() + from, points * sizeof(double));
    from += points;
  }
  return p;
}

/// The checksum of the Livermore loops, over the first 7 x 100 values.
double official_sum(const plane& p) {
  double sum = 0;
  for (std::size_t i = 0; i < 700; ++i) sum += p.za[i] * double(i + 1);
  return sum;
}

/// Values in (0, 1) that depend on nothing but their place.
double scattered(std::uint64_t at) {
  std::uint64_t x = (at + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return double((x ^ (x >> 29)) >> 11) * 0x1p-53;
}

plane scattered_plane(int rows, int columns) {
  plane p(rows, columns);
  const std::size_t points = p.za.size();
  for (std::size_t i = 0; i < points; ++i) {
    p.za[i] = scattered(i);
    p.zb[i] = 0.25 * scattered(points + i);
    p.zr[i] = 0.25 * scattered(2 * points + i);
    p.zu[i] = 0.25 * scattered(3 * points + i);
    p.zv[i] = 0.25 * scattered(4 * points + i);
    p.zz[i] = 0.25 * scattered(5 * points + i);
  }
  return p;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// The checksums known for the small plane; 1600 sweeps are those of the published suite.
void compare_sums(report& r) {
  const struct {
    int sweeps;
    double sum;
  } known[] = {{1, 2.580017798601405e+04},
               {2, 2.692135240066715e+04},
               {10, 3.228104575530876e+04},
               {100, 3.549894609774404e+04},
               {1600, 3.549900501563623e+04}};
  for (const auto& k : known) {
    plane p = official_plane();
    blocks cut(p, 2, 5);
    weft::runtime rt;
    rt.run([&] { cut.fork_sweeps(p, k.sweeps); });
    char got[32];
    char wanted[32];
    std::snprintf(got, sizeof got, "%.15e", official_sum(p));
    std::snprintf(wanted, sizeof wanted, "%.15e", k.sum);
    char text[160];
    std::snprintf(text, sizeof text, "kernel 23, 7 x 101, %4d sweeps: checksum %s, known %s, equal", k.sweeps,
                  got, wanted);
    r.note(text, std::strcmp(got, wanted) == 0);
  }
}

}  // namespace

void kernel23(size s, report& r) {
  const int edge = s == size::full ? 2048 : 200;
  const int sweeps = s == size::full ? 16 : 5;
  const int cuts = 8;
  const plane start = scattered_plane(edge, edge);
  plane mine = start;
  blocks cut(mine, cuts, cuts);
  problem p;
  p.name = "kernel 23, " + std::to_string(edge) + "^2, " + std::to_string(sweeps) + " sweeps";
  p.tasks = std::uint64_t(cuts) * cuts * std::uint64_t(sweeps);
  std::vector<double> expected;
  p.prepare = [&] { mine.za = start.za; };
  p.serial = [&] {
    serial_sweeps(mine, sweeps);
    expected = mine.za;
  };
  p.parallel = [&](weft::runtime& rt) { rt.run([&] { cut.fork_sweeps(mine, sweeps); }); };
  p.equal = [&] { return same_bits(mine.za, expected); };
  visit(p, r);

  std::optional<skewed_plane> skewed;
  problem tuned = p;
  tuned.tasks = skewed_plane(start).tiles(std::size_t(sweeps));
  tuned.name = "the same, chained in vectors";
  tuned.prepare = [&] {
    mine.za = start.za;
    skewed.emplace(start);
  };
  tuned.parallel = [&](weft::runtime& rt) { skewed->sweep(rt, sweeps); };
  tuned.equal = [&] {
    skewed->store(mine);
    return same_bits(mine.za, expected);
  };
  visit(tuned, r);
  progress("kernel 23, the known checksums");
  compare_sums(r);
}

}  // namespace tour
