// SPDX-License-Identifier: BSL-1.0
// Cholesky factorisation of a symmetric matrix in tiles: storage, kernels on tiles, and the proof of a
// result.
#pragma once

#include "config.hpp"

#include <vector>

namespace weft_bench {

/// So many rows and columns, column by column, so that the inner loops of the kernels run along columns.
template <int edge>
struct alignas(64) tile {
  double value[edge * edge];

  double& operator()(int i, int j) { return value[j * edge + i]; }
  double operator()(int i, int j) const { return value[j * edge + i]; }
};

// The kernels are compiled once, into the executable, for tiles of 64 and of 128, so that all rivals,
// whatever compiler built them, call the same code.
template <int edge>
void factor(tile<edge>& a);  ///< a := L with L L^T = a
template <int edge>
void solve(const tile<edge>& l, tile<edge>& b);  ///< b := b L^-T
template <int edge>
void multiply(const tile<edge>& a, const tile<edge>& b, tile<edge>& c);  ///< c := c - a b^T

/// The lower triangle of a matrix.
template <int edge>
class matrix {
 public:
  explicit matrix(int order);

  int tiles() const { return tiles_; }
  tile<edge>& at(int i, int j) { return tile_[place(i, j)]; }
  const tile<edge>& at(int i, int j) const { return tile_[place(i, j)]; }
  /// Whether this is the factor of the matrix that the constructor makes: L (L^T x) against A x, for one x.
  bool is_factor() const;

 private:
  static std::size_t place(int i, int j) { return std::size_t(i * (i + 1) / 2 + j); }
  int tiles_;
  std::vector<tile<edge>> tile_;
};

inline long long cholesky_tasks(int tiles) {
  long long count = 0;
  for (long long below = 0; below < tiles; ++below) count += 1 + below + below * (below + 1) / 2;
  return count;
}

template <int edge, class function>
outcome cholesky_outcome_of(const problem& p, const function& execute) {
  {
    matrix<edge> warm(4 * edge);
    execute(warm);
  }
  matrix<edge> m(p.size);
  const double seconds = seconds_of_call([&] { return execute(m); });
  return plain_outcome(m.is_factor() ? 1 : 0, cholesky_tasks(m.tiles()), seconds);
}

/// Times `execute(matrix)`, which replaces the matrix, in tiles of either size, by its factor.
template <class function>
outcome cholesky_outcome(const problem& p, const function& execute) {
  return p.edge == 64 ? cholesky_outcome_of<64>(p, execute) : cholesky_outcome_of<128>(p, execute);
}

}  // namespace weft_bench
