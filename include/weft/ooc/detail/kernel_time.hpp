// SPDX-License-Identifier: BSL-1.0
// The time of a kernel for a point.
#pragma once

#include <weft/ooc/detail/row_sweeps.hpp>
#include <weft/ooc/disk_speed.hpp>
#include <weft/wavefront/chained_sweeps.hpp>

#include <vector>

namespace weft::inline WEFT_ABI::ooc {

/// Seconds per point and sweep that a kernel takes.
struct kernel_speed {
  double plain = 0;    ///< point after point
  double chained = 0;  ///< as chained sweeps are computed: in vectors where the kernel sees four neighbours
};

namespace detail {

/// The grid on which a kernel is measured.
struct measured_grid {
  std::size_t rows = 64, columns = 512;
  std::size_t bytes = 0;  ///< of memory; an upper bound
};
/// The largest one for which the memory suffices; but a very small one always.
template <class T, std::size_t Fields, class Kernel>
measured_grid measured_within(std::size_t memory) {
  std::size_t around = 1;  // rows and columns, on each side
  if constexpr (window_kernel<Kernel>) {
    constexpr reach sees = Kernel::reach;
    around = std::max(sees.rows(), sees.columns());
  }
  for (measured_grid g;;) {
    // The skewed layout has whole strips, and some vectors before and behind each.
    const std::size_t lanes = wavefront::native_lanes<T>, padding = std::max(2 * around, 4 * lanes + 2);
    g.bytes = (g.rows + 2 * std::max(around, lanes)) * (g.columns + padding) *
                  (std::max<std::size_t>(Fields, 1) + 1) * sizeof(T) +
              4 * file_alignment;
    if (g.bytes <= memory || g.columns == 32) return g;
    (g.rows > 16 ? g.rows : g.columns) /= 2;
  }
}

/// Measures a kernel on a small grid in memory; some milliseconds.
template <class T, std::size_t Fields, class Kernel>
kernel_speed measure_kernel(const Kernel& kernel, const measured_grid& on = {}) {
  const std::size_t rows = on.rows, columns = on.columns;
  kernel_speed s;
  if constexpr (window_kernel<Kernel>) {
    constexpr reach sees = Kernel::reach;
    const std::size_t stride = columns + sees.west + sees.east, most = sees.north + rows + sees.south;
    std::vector<T> values(most * stride), fields(rows * columns * Fields + 1);
    std::vector<const T*> lines(most);
    for (std::size_t i = 0; i < most; ++i) lines[i] = &values[i * stride + sees.west];
    const double time = median_time(3, [&] {
      for (std::size_t r = 0; r < rows; ++r)
        sweep_columns<false>(&lines[r + sees.north], &values[(r + sees.north) * stride + sees.west], 0,
                             columns, &fields[r * columns * (Fields != 0)], rows * columns, kernel);
    });
    s.plain = s.chained = time / static_cast<double>(rows * columns);
    return s;
  } else {
    {
      constexpr std::size_t sweeps = 4;
      wavefront::skewed_grid<T, Fields> grid(rows, columns);
      const wavefront::chained_sweeps<decltype(grid), Kernel> chain(grid, sweeps, kernel, {.diagonals = 8});
      const double time = median_time(3, [&] {
        for (std::size_t row = 0; row < chain.rows(); ++row)
          for (std::size_t column = 0; column < chain.columns(); ++column) chain.tile(row, column);
      });
      s.chained = time / static_cast<double>(rows * columns * sweeps);
    }
    std::vector<T> values((rows + 2) * (columns + 2)), fields(rows * columns * Fields + 1);
    const double plain = median_time(3, [&] {
      const std::size_t stride = columns + 2;
      for (std::size_t r = 0; r < rows; ++r)
        sweep_row(&values[r * stride], &values[(r + 1) * stride], &values[(r + 2) * stride], columns,
                  &fields[r * columns * (Fields != 0)], rows * columns, kernel);
    });
    s.plain = plain / static_cast<double>(rows * columns);
    return s;
  }
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::ooc
