// SPDX-License-Identifier: BSL-1.0
// Livermore kernel 23 for the examples: the kernel, data that nobody has to keep, and the plain loops over a
// few rows at a time, which say what is right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lk23 {

struct kernel {
  template <class V, class C>
  V operator()(V n, V w, V c, V e, V s, const C& k) const {
    const V qa = s * k[3] + n * k[0] + e * k[2] + w * k[1] + k[4];
    return c + 0.175 * (qa - c);
  }
};

/// The data: a hash of the place and field (0: the value), so that nothing needs to be kept for the check.
inline double value(std::size_t row, std::size_t column, int field) {
  std::uint64_t z =
      ((std::uint64_t{row} << 32 | column) * 6 + static_cast<unsigned>(field)) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return 0.01 + 0.2 * (static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53);
}

/// Whether a grid holds what the plain loops give: they run over a window of sweeps + 2 rows. `read_row(row,
/// to)` reads one with its boundary, or returns false if somebody else has it.
template <class Read>
bool verify(std::size_t rows, std::size_t columns, std::size_t sweeps, const Read& read_row) {
  const std::size_t height = sweeps + 2;
  std::vector<std::vector<double>> window(height, std::vector<double>(columns + 2));
  std::vector<std::vector<double>> fields(height, std::vector<double>(5 * columns));
  std::vector<double> found(columns + 2);
  for (std::size_t r = 0; r <= rows + sweeps; ++r) {
    if (r <= rows + 1) {
      for (std::size_t c = 0; c < columns + 2; ++c) window[r % height][c] = value(r, c, 0);
      for (std::size_t c = 0; c < columns && r >= 1 && r <= rows; ++c)
        for (int i = 0; i < 5; ++i)
          fields[r % height][5 * c + static_cast<std::size_t>(i)] = value(r, c + 1, 1 + i);
    }
    for (std::size_t k = 0; k < sweeps && k + 1 < r; ++k) {
      const std::size_t row = r - 1 - k;
      if (row > rows) continue;
      double* const z = window[row % height].data();
      const double* const north = window[(row - 1) % height].data();
      const double* const south = window[(row + 1) % height].data();
      for (std::size_t c = 1; c <= columns; ++c)
        z[c] = kernel{}(north[c], z[c - 1], z[c], z[c + 1], south[c], &fields[row % height][5 * (c - 1)]);
    }
    if (r <= sweeps || r - sweeps > rows || !read_row(r - sweeps, found)) continue;
    if (std::memcmp(found.data(), window[(r - sweeps) % height].data(), found.size() * sizeof(double)) != 0)
      return false;
  }
  return true;
}

}  // namespace lk23
