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

/// Measures a kernel on a small grid in memory; some milliseconds.
template <class T, std::size_t Fields, class Kernel>
kernel_speed measure_kernel(const Kernel& kernel) {
  constexpr std::size_t rows = 64, columns = 512, sweeps = 4;
  kernel_speed s;
  if constexpr (window_kernel<Kernel>) {
    constexpr reach sees = Kernel::reach;
    constexpr std::size_t stride = columns + sees.west + sees.east, most = sees.north + rows + sees.south;
    std::vector<T> values(most * stride), fields(rows * columns * Fields + 1);
    std::vector<const T*> lines(most);
    for (std::size_t i = 0; i < most; ++i) lines[i] = &values[i * stride + sees.west];
    const double time = median_time(3, [&] {
      for (std::size_t r = 0; r < rows; ++r)
        sweep_columns<false>(&lines[r + sees.north], &values[(r + sees.north) * stride + sees.west], 0,
                             columns, &fields[r * columns * (Fields != 0)], rows * columns, kernel);
    });
    s.plain = s.chained = time / (rows * columns);
    return s;
  } else {
    wavefront::skewed_grid<T, Fields> grid(rows, columns);
    const wavefront::chained_sweeps<decltype(grid), Kernel> chain(grid, sweeps, kernel, {.diagonals = 8});
    const double time = median_time(3, [&] {
      for (std::size_t row = 0; row < chain.rows(); ++row)
        for (std::size_t column = 0; column < chain.columns(); ++column) chain.tile(row, column);
    });
    s.chained = time / (rows * columns * sweeps);
    std::vector<T> values((rows + 2) * (columns + 2)), fields(rows * columns * Fields + 1);
    const double plain = median_time(3, [&] {
      constexpr std::size_t stride = columns + 2;
      for (std::size_t r = 0; r < rows; ++r)
        sweep_row(&values[r * stride], &values[(r + 1) * stride], &values[(r + 2) * stride], columns,
                  &fields[r * columns * (Fields != 0)], rows * columns, kernel);
    });
    s.plain = plain / (rows * columns);
    return s;
  }
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::ooc
