// SPDX-License-Identifier: BSL-1.0
// Cholesky factorisation of a symmetric matrix in tiles: storage, kernels on tiles, and the proof of a
// result.
#pragma once

#include "config.hpp"

#include <vector>

namespace weft_bench {

/// Rows and columns of a tile.
static const int edge = 128;

/// Column by column, so that the inner loops of the kernels run along columns.
struct alignas(64) tile {
  double value[edge * edge];

  double& operator()(int i, int j) { return value[j * edge + i]; }
  double operator()(int i, int j) const { return value[j * edge + i]; }
};

// The kernels are compiled once, into the executable, so that all rivals, whatever compiler built them, call
// the same code.
void factor(tile& a);                                  ///< a := L with L L^T = a
void solve(const tile& l, tile& b);                    ///< b := b L^-T
void multiply(const tile& a, const tile& b, tile& c);  ///< c := c - a b^T

/// The lower triangle of a matrix.
class matrix {
 public:
  explicit matrix(int order);

  int tiles() const { return tiles_; }
  tile& at(int i, int j) { return tile_[place(i, j)]; }
  const tile& at(int i, int j) const { return tile_[place(i, j)]; }
  /// Whether this is the factor of the matrix that the constructor makes: L (L^T x) against A x, for one x.
  bool is_factor() const;

 private:
  static std::size_t place(int i, int j) { return std::size_t(i * (i + 1) / 2 + j); }
  int tiles_;
  std::vector<tile> tile_;
};

inline long long cholesky_tasks(int tiles) {
  long long count = 0;
  for (long long below = 0; below < tiles; ++below) count += 1 + below + below * (below + 1) / 2;
  return count;
}

/// Times `execute(matrix)`, which replaces the matrix by its factor.
template <class function>
outcome cholesky_outcome(const problem& p, const function& execute) {
  {
    matrix warm(4 * edge);
    execute(warm);
  }
  matrix m(p.size);
  const double seconds = seconds_of_call([&] { return execute(m); });
  return plain_outcome(m.is_factor() ? 1 : 0, cholesky_tasks(m.tiles()), seconds);
}

}  // namespace weft_bench
