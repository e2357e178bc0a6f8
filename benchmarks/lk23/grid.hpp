// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23, implicit two-dimensional hydrodynamics: its data, and the plain loops that say what is
// right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lk23 {

/// The arrays, row-major, with a border of one around `rows` x `columns` inner points. za is changed in
/// place; zr, zb, zu, zv and zz are the weights of the southern, northern, eastern and western neighbour, and
/// the source.
struct grid {
  long rows;
  long columns;
  std::vector<double> za, zr, zb, zu, zv, zz;

  grid(long r, long c)
      : rows(r), columns(c), za(size()), zr(size()), zb(size()), zu(size()), zv(size()), zz(size()) {}
  long width() const { return columns + 2; }
  std::size_t size() const { return static_cast<std::size_t>((rows + 2) * (columns + 2)); }
  std::size_t at(long row, long column) const { return static_cast<std::size_t>(row * width() + column); }

  /// Data that depend on a point's number only.
  void fill(std::uint64_t seed) {
    const auto number = [&seed] {
      std::uint64_t z = (seed += 0x9E3779B97F4A7C15u);
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      return static_cast<double>((z ^ (z >> 27)) >> 11) * 0x1p-53;
    };
    for (std::size_t i = 0; i < size(); ++i) {
      za[i] = number();
      for (std::vector<double>* weight : {&zr, &zb, &zu, &zv}) (*weight)[i] = 0.24 * number();
      zz[i] = 0.1 * number();
    }
  }
  /// Changes with every bit of the result.
  long long digest() const {
    std::uint64_t h = 0;
    for (const double& v : za) {
      std::uint64_t bits = 0;
      __builtin_memcpy(&bits, &v, sizeof bits);
      h = (h ^ bits) * 0x9E3779B97F4A7C15u;
      h ^= h >> 32;
    }
    return static_cast<long long>(h >> 1);
  }
};

/// One point: the contract. The operations are those of the kernel in C, in this order, none of them fused.
template <class V>
inline __attribute__((always_inline)) V point(const V& north, const V& west, const V& centre, const V& east,
                                              const V& south, const V& zr, const V& zb, const V& zu,
                                              const V& zv, const V& zz) {
  const V qa = south * zr + north * zb + east * zu + west * zv + zz;
  return centre + 0.175 * (qa - centre);
}

/// Rows [r0, r1) and columns [c0, c1) of one sweep.
inline void plain_block(grid& g, long r0, long r1, long c0, long c1) {
  const long w = g.width();
  for (long j = r0; j < r1; ++j)
    for (long k = c0; k < c1; ++k) {
      const auto i = static_cast<std::size_t>(j * w + k);
      double* const a = &g.za[i];
      *a = point(a[-w], a[-1], a[0], a[1], a[w], g.zr[i], g.zb[i], g.zu[i], g.zv[i], g.zz[i]);
    }
}

/// The plain loops: the reference for all other forms, to the last bit.
inline void plain(grid& g, long sweeps) {
  for (long s = 0; s < sweeps; ++s) plain_block(g, 1, g.rows + 1, 1, g.columns + 1);
}

}  // namespace lk23
