// SPDX-License-Identifier: BSL-1.0
// Fourth station: Cholesky factorisation of a matrix in tiles, one task per operation on tiles.
#include "tour.hpp"

#include <cmath>
#include <cstring>
#include <deque>

namespace tour {

namespace {

constexpr int edge = 64;  // of a tile

struct tile {
  std::vector<double> value = std::vector<double>(std::size_t(edge) * edge);

  double& operator()(int i, int j) { return value[std::size_t(i * edge + j)]; }
  double operator()(int i, int j) const { return value[std::size_t(i * edge + j)]; }
};

[[gnu::noinline]] void factor(tile& a) {
  for (int k = 0; k < edge; ++k) {
    for (int j = 0; j < k; ++j) a(k, k) -= a(k, j) * a(k, j);
    a(k, k) = std::sqrt(a(k, k));
    for (int i = k + 1; i < edge; ++i) {
      for (int j = 0; j < k; ++j) a(i, k) -= a(i, j) * a(k, j);
      a(i, k) /= a(k, k);
    }
    for (int j = k + 1; j < edge; ++j) a(k, j) = 0;
  }
}

[[gnu::noinline]] void solve(const tile& l, tile& b) {
  for (int r = 0; r < edge; ++r)
    for (int c = 0; c < edge; ++c) {
      double v = b(r, c);
      for (int j = 0; j < c; ++j) v -= b(r, j) * l(c, j);
      b(r, c) = v / l(c, c);
    }
}

[[gnu::noinline]] void multiply(const tile& a, const tile& b, tile& c) {
  for (int i = 0; i < edge; ++i)
    for (int j = 0; j < edge; ++j) {
      double v = 0;
      for (int k = 0; k < edge; ++k) v += a(i, k) * b(j, k);
      c(i, j) -= v;
    }
}

double entry(int i, int j, int n) { return i == j ? n + 1.0 : 1.0 / (1 + std::abs(i - j)); }

/// Place of tile (i, j), j <= i, in a list of the lower triangle.
std::size_t place(int i, int j) { return std::size_t(i * (i + 1) / 2 + j); }

tile start_tile(int i, int j, int n) {
  tile t;
  for (int r = 0; r < edge; ++r)
    for (int c = 0; c < edge; ++c) t(r, c) = entry(i * edge + r, j * edge + c, n);
  return t;
}

std::vector<tile> start_matrix(int tiles) {
  std::vector<tile> t;
  for (int i = 0; i < tiles; ++i)
    for (int j = 0; j <= i; ++j) t.push_back(start_tile(i, j, tiles * edge));
  return t;
}

void serial_cholesky(std::vector<tile>& t, int tiles) {
  for (int k = 0; k < tiles; ++k) {
    factor(t[place(k, k)]);
    for (int i = k + 1; i < tiles; ++i) solve(t[place(k, k)], t[place(i, k)]);
    for (int i = k + 1; i < tiles; ++i)
      for (int j = k + 1; j <= i; ++j) multiply(t[place(i, k)], t[place(j, k)], t[place(i, j)]);
  }
}

/// The same loops with fork in place of the calls: the order follows from what each task reads and updates.
void fork_cholesky(std::deque<weft::shared<tile>>& t, int tiles) {
  for (int k = 0; k < tiles; ++k) {
    weft::fork({.name = "factor", .priority = 3}, factor, weft::update(t[place(k, k)]));
    for (int i = k + 1; i < tiles; ++i)
      weft::fork({.name = "solve", .priority = 2}, solve, weft::read(t[place(k, k)]),
                 weft::update(t[place(i, k)]));
    for (int i = k + 1; i < tiles; ++i)
      for (int j = k + 1; j <= i; ++j)
        weft::fork({.name = "multiply"}, multiply, weft::read(t[place(i, k)]), weft::read(t[place(j, k)]),
                   weft::update(t[place(i, j)]));
  }
}

}  // namespace

void cholesky(size s, report& r) {
  const int tiles = s == size::full ? 20 : 5;
  const int n = tiles * edge;
  const std::vector<tile> start = start_matrix(tiles);
  std::vector<tile> serial;
  std::deque<weft::shared<tile>> mine;
  problem p;
  p.name = "Cholesky, n = " + std::to_string(n) + ", tiles of " + std::to_string(edge);
  for (int k = 0; k < tiles; ++k) {
    const int below = tiles - 1 - k;
    p.tasks += std::uint64_t(1 + below + below * (below + 1) / 2);
  }
  p.prepare = [&] {
    mine.clear();
    for (const tile& t : start) mine.emplace_back(t);
  };
  p.serial = [&] {
    serial = start;
    serial_cholesky(serial, tiles);
  };
  p.parallel = [&](weft::runtime& rt) { rt.run([&] { fork_cholesky(mine, tiles); }); };
  p.equal = [&] {
    for (std::size_t i = 0; i < serial.size(); ++i)
      if (std::memcmp(serial[i].value.data(), mine[i].get().value.data(),
                      serial[i].value.size() * sizeof(double)) != 0)
        return false;
    return true;
  };
  visit(p, r);
}

}  // namespace tour
