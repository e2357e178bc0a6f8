// SPDX-License-Identifier: BSL-1.0
// The official data of Livermore kernel 23, and the published sums of its results.
#pragma once

#include "lk23/grid.hpp"

#include <cstddef>
#include <vector>

namespace weft_test {

inline constexpr long official_width = 101;

/// The data of the Livermore loops: one sequence of numbers through the common block, in which the arrays of
/// this kernel follow each other. `n`: the loop's span; the inner points are rows 1 to 5 and columns 1 to n
/// - 1.
inline lk23::grid official(long n) {
  constexpr std::size_t skipped = 12'451, length = 7 * official_width;
  std::vector<double> all(skipped + 9 * length);
  double fuzz = 0.0012345;
  const double fizz = 1.1 * fuzz;
  double buzz = 1.0 + fuzz;
  for (double& v : all) {
    buzz = (1.0 - fuzz) * buzz + fuzz;
    fuzz = -fuzz;
    v = (buzz - fizz) * 0.1;
  }
  lk23::grid g(5, n - 1);
  enum { za, zp, zq, zr, zm, zb, zu, zv, zz };
  const auto copy = [&](int which, std::vector<double>& to) {
    for (long j = 0; j < 7; ++j)
      for (long k = 0; k <= n; ++k)
        to[g.at(j, k)] = all[skipped + static_cast<std::size_t>(which) * length +
                             static_cast<std::size_t>(official_width * j + k)];
  };
  copy(za, g.za), copy(zr, g.zr), copy(zb, g.zb), copy(zu, g.zu), copy(zv, g.zv), copy(zz, g.zz);
  return g;
}

/// The official checksum: the first 7 n elements of za, each times its number from 1. `start` holds what lies
/// beside the loop's span.
inline double checksum(const lk23::grid& g, long n) {
  const lk23::grid whole = official(100);  // the columns that a short span does not reach
  double sum = 0;
  for (long i = 0; i < 7 * n; ++i) {
    const long j = i / official_width, k = i % official_width;
    const double v = k <= n ? g.za[g.at(j, k)] : whole.za[whole.at(j, k)];
    sum += v * static_cast<double>(i + 1);
  }
  return sum;
}

/// A published sum.
struct official_sum {
  long n, sweeps;
  double sum;
};
inline constexpr official_sum official_sums[] = {
    {100, 1, 2.580017798601405e+04},    {100, 2, 2.692135240066715e+04},
    {100, 10, 3.228104575530876e+04},   {100, 100, 3.549894609774404e+04},
    {100, 1600, 3.549900501563623e+04}, {14, 11'200, 4.850340602749970e+02}};

}  // namespace weft_test
