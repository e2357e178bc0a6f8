// SPDX-License-Identifier: BSL-1.0
// Grids whose values are a function of the place, and the plain loops as the oracle of sweeps over them.
#pragma once

#include "support/random.hpp"

#include <weft/ooc.hpp>
#include <weft/weft.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace weft_test {

/// Livermore kernel 23, which can count its calls, and stop a run.
struct kernel_23 {
  template <class V, class C>
  V operator()(V n, V w, V c, V e, V s, const C& k) const {
    if (counts_ && ++calls_ == stop_at_) stopped_->request_stop();
    const V qa = s * k[3] + n * k[0] + e * k[2] + w * k[1] + k[4];
    return c + 0.175 * (qa - c);
  }
  /// Counts from now on, and requests a stop after so many calls.
  static void stop_after(long calls, std::stop_source& source) {
    count();
    stop_at_ = calls;
    stopped_ = &source;
  }
  /// Counts from now on, from 0.
  static void count() {
    calls_ = stop_at_ = 0;
    counts_ = true;
  }
  /// Ends counting. *Returns*: the number of calls.
  static long counted() {
    counts_ = false;
    return calls_;
  }

 private:
  static inline std::atomic<long> calls_{0};
  static inline bool counts_ = false;  // this and the others change between runs only
  static inline long stop_at_ = 0;
  static inline std::stop_source* stopped_ = nullptr;
};

/// The number of a point and field, between 0 and 1.
inline double value_at(std::size_t r, std::size_t c, int field) {
  random number((r * 1'000'003 + c) * 6 + static_cast<std::uint64_t>(field));
  return 0.01 + 0.2 * (static_cast<double>(number() >> 11) * 0x1p-53);
}

/// How the oracle goes over the points.
enum class order { in_place, jacobi };

/// The values after so many sweeps, with the boundary, by plain loops. `changed`: a point (row, column) whose
/// first coefficient is another one.
inline std::vector<double> plain_loops(std::size_t rows, std::size_t columns, std::size_t sweeps,
                                       order how = order::in_place) {
  const std::size_t stride = columns + 2;
  std::vector<double> z((rows + 2) * stride), coefficients(rows * columns * 5);
  for (std::size_t r = 0; r < rows + 2; ++r)
    for (std::size_t c = 0; c < stride; ++c) z[r * stride + c] = value_at(r, c, 0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      for (int i = 0; i < 5; ++i)
        coefficients[(r * columns + c) * 5 + static_cast<std::size_t>(i)] = value_at(r + 1, c + 1, 1 + i);
  for (std::size_t k = 0; k < sweeps; ++k) {
    const std::vector<double> old = how == order::jacobi ? z : std::vector<double>();
    for (std::size_t r = 1; r <= rows; ++r)
      for (std::size_t c = 1; c <= columns; ++c) {
        const std::size_t at = r * stride + c;
        const std::vector<double>& from = how == order::jacobi ? old : z;
        z[at] = kernel_23{}(from[at - stride], from[at - 1], from[at], from[at + 1], from[at + stride],
                            &coefficients[((r - 1) * columns + c - 1) * 5]);
      }
  }
  return z;
}

using grid = weft::ooc::grid_file<double, 5>;

/// Whether the grid holds the same bits.
inline bool holds(grid& g, const std::vector<double>& expected) {
  const std::size_t stride = g.columns() + 2;
  std::vector<double> row(stride);
  for (std::size_t r = 0; r < g.rows() + 2; ++r) {
    g.read_row(r, row);
    if (std::memcmp(row.data(), &expected[r * stride], stride * sizeof(double)) != 0) return false;
  }
  return true;
}

/// Pages of a file that lie in the page cache. *Throws*: std::system_error.
inline std::size_t cached_pages(const weft::io::file& f) {
  const std::size_t size = f.size(), page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, f.descriptor(), 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  std::vector<unsigned char> there((size + page - 1) / page);
  const int failed = ::mincore(at, size, there.data());
  ::munmap(at, size);
  if (failed != 0) throw std::system_error(errno, std::generic_category(), "mincore");
  return static_cast<std::size_t>(std::count_if(there.begin(), there.end(), [](auto c) { return c & 1; }));
}

}  // namespace weft_test
