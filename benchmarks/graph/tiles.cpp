// SPDX-License-Identifier: BSL-1.0
// The kernels on tiles, of OpenBLAS or as plain loops, and the proof of a factorisation.
#include "tiles.hpp"

#if WEFT_BENCH_OPENBLAS
#include <cblas.h>
#endif

#include <cmath>
#include <cstdlib>

namespace weft_bench {

namespace {

double entry(int i, int j, int order) { return i == j ? order + 1.0 : 1.0 / (1 + std::abs(i - j)); }

}  // namespace

#if WEFT_BENCH_OPENBLAS

extern "C" void dpotrf_(const char*, const int*, double*, const int*, int*, std::size_t);

namespace {
/// Tasks are parallel, kernels are not.
[[maybe_unused]] const bool one_thread = (openblas_set_num_threads(1), true);
}  // namespace

template <int edge>
void factor(tile<edge>& a) {
  const int n = edge;
  int info = 0;
  dpotrf_("L", &n, a.value, &n, &info, 1);
  for (int j = 1; j < edge; ++j)
    for (int i = 0; i < j; ++i) a(i, j) = 0;
}

template <int edge>
void solve(const tile<edge>& l, tile<edge>& b) {
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, edge, edge, 1, l.value, edge,
              b.value, edge);
}

template <int edge>
void multiply(const tile<edge>& a, const tile<edge>& b, tile<edge>& c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, edge, edge, edge, -1, a.value, edge, b.value, edge, 1,
              c.value, edge);
}

#else

namespace {

/// c := c - s a, for columns.
template <int edge>
inline void subtract(double* __restrict c, const double* __restrict a, double s, int from) {
  for (int i = from; i < edge; ++i) c[i] -= a[i] * s;
}

}  // namespace

template <int edge>
void factor(tile<edge>& a) {
  for (int k = 0; k < edge; ++k) {
    double* const column = &a(0, k);
    for (int j = 0; j < k; ++j) subtract<edge>(column, &a(0, j), a(k, j), k);
    const double root = std::sqrt(a(k, k));
    column[k] = root;
    for (int i = k + 1; i < edge; ++i) column[i] /= root;
    for (int i = 0; i < k; ++i) column[i] = 0;
  }
}

template <int edge>
void solve(const tile<edge>& l, tile<edge>& b) {
  for (int k = 0; k < edge; ++k) {
    double* const column = &b(0, k);
    for (int j = 0; j < k; ++j) subtract<edge>(column, &b(0, j), l(k, j), 0);
    const double scale = 1 / l(k, k);
    for (int i = 0; i < edge; ++i) column[i] *= scale;
  }
}

template <int edge>
void multiply(const tile<edge>& a, const tile<edge>& b, tile<edge>& c) {
  constexpr int step = 4;
  static_assert(edge % step == 0);
  for (int j = 0; j < edge; ++j) {
    double* __restrict const out = &c(0, j);
    for (int k = 0; k < edge; k += step) {
      const double* __restrict const in = a.value + k * edge;
      const double s0 = b(j, k), s1 = b(j, k + 1), s2 = b(j, k + 2), s3 = b(j, k + 3);
      for (int i = 0; i < edge; ++i)
        out[i] -= in[i] * s0 + in[i + edge] * s1 + (in[i + 2 * edge] * s2 + in[i + 3 * edge] * s3);
    }
  }
}

#endif

template <int edge>
matrix<edge>::matrix(int order) : tiles_(order / edge), tile_(place(tiles_, 0)) {
  for (int ti = 0; ti < tiles_; ++ti)
    for (int tj = 0; tj <= ti; ++tj)
      for (int j = 0; j < edge; ++j)
        for (int i = 0; i < edge; ++i) at(ti, tj)(i, j) = entry(ti * edge + i, tj * edge + j, order);
}

template <int edge>
bool matrix<edge>::is_factor() const {
  const int order = tiles_ * edge;
  const auto x = [](int i) { return 1.0 + i % 7; };
  std::vector<double> y(std::size_t(order), 0.0), z(std::size_t(order), 0.0);
  const auto for_each_entry = [&](const auto& f) {
    for (int ti = 0; ti < tiles_; ++ti)
      for (int tj = 0; tj <= ti; ++tj)
        for (int j = 0; j < edge; ++j)
          for (int i = 0; i < edge; ++i)
            f(std::size_t(ti * edge + i), std::size_t(tj * edge + j), at(ti, tj)(i, j));
  };
  for_each_entry([&](std::size_t i, std::size_t j, double v) { y[j] += v * x(int(i)); });
  for_each_entry([&](std::size_t i, std::size_t j, double v) { z[i] += v * y[j]; });
  for (int i = 0; i < order; ++i) {
    double right = 0;
    for (int j = 0; j < order; ++j) right += entry(i, j, order) * x(j);
    if (!(std::abs(z[std::size_t(i)] - right) <= 1e-10 * right)) return false;  // NaN is wrong too
  }
  return true;
}

template void factor(tile<64>&);
template void solve(const tile<64>&, tile<64>&);
template void multiply(const tile<64>&, const tile<64>&, tile<64>&);
template class matrix<64>;
template void factor(tile<128>&);
template void solve(const tile<128>&, tile<128>&);
template void multiply(const tile<128>&, const tile<128>&, tile<128>&);
template class matrix<128>;

}  // namespace weft_bench
