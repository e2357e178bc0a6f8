// SPDX-License-Identifier: BSL-1.0
// The time that sweeps over a grid file will take, by policy.
#pragma once

#include <weft/ooc/detail/chained_pass.hpp>
#include <weft/ooc/detail/overlay_pass.hpp>
#include <weft/ooc/detail/tile_pass.hpp>
#include <weft/ooc/sweep_options.hpp>

#include <cmath>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Seconds per point and sweep that a kernel computes.
struct kernel_speed {
  double plain;    ///< point after point
  double chained;  ///< in vectors, many sweeps chained
};

/// Measures a kernel on a small grid in memory; some milliseconds.
template <class T, std::size_t Fields, class Kernel>
kernel_speed measure_kernel(const Kernel& kernel) {
  constexpr std::size_t rows = 64, columns = 512, sweeps = 4;
  kernel_speed s;
  {
    wavefront::skewed_grid<T, Fields> grid(rows, columns);
    const wavefront::chained_sweeps<decltype(grid), Kernel> chain(grid, sweeps, kernel, {.diagonals = 8});
    const double time = median_time(3, [&](unsigned) {
      for (std::size_t row = 0; row < chain.rows(); ++row)
        for (std::size_t column = 0; column < chain.columns(); ++column) chain.tile(row, column);
    });
    s.chained = time / (rows * columns * sweeps);
  }
  std::vector<T> values((rows + 2) * (columns + 2)), fields(rows * columns * Fields + 1);
  const double time = median_time(3, [&](unsigned) {
    constexpr std::size_t stride = columns + 2;
    for (std::size_t r = 0; r < rows; ++r)
      sweep_row(&values[r * stride], &values[(r + 1) * stride], &values[(r + 2) * stride], columns,
                &fields[r * columns * (Fields != 0)], rows * columns, kernel);
  });
  s.plain = time / (rows * columns);
  return s;
}

/// What the sweeps will take, seconds. `plan`: of the policy chained; `buffers`: of the policy overlay.
/// *Source*: Caron, Desprez, Suter 2004, equation 12, for one disk; docs/explanation/out-of-core.md.
inline double predict(policy p, const grid_geometry& g, std::size_t sweeps, const chained_plan& plan,
                      std::size_t buffers, unsigned workers, const disk_speed& disk,
                      const kernel_speed& kernel) {
  const auto n = static_cast<double>(g.tiles()), passes = static_cast<double>(sweeps);
  const double points = static_cast<double>(g.rows) * static_cast<double>(g.columns);
  const auto values = static_cast<double>(g.values(0, 0).size);
  double fields = 0;
  for (std::size_t i = 0; i < g.field_extents(); ++i)
    fields += static_cast<double>(g.field_extent(0, i).size);
  const auto requests = 1 + static_cast<double>(g.field_extents());
  const double reading = requests * disk.read_latency + (values + fields) * disk.read_per_byte;
  const double writing = disk.writing(values);
  const double computing = points / n * kernel.plain;
  const std::size_t wave = std::min(g.tiles_down(), g.tiles_across());
  const double ending = 4 * disk.writing(file_alignment);  // a header, and waiting for the disk
  switch (p) {
    case policy::basic:
      return passes * (n * (reading + computing + writing) + ending);
    case policy::three_buffers:
      return passes * (n * std::max(reading + writing, computing) + reading + computing + ending);
    case policy::pool: {
      const double transfers = (values + fields) * disk.read_per_byte + values * disk.write_per_byte;
      return passes * (n * std::max(transfers, computing) + reading + computing + writing + ending);
    }
    case policy::overlay: {
      double sides = 0;
      for (const side s : {side::first_row, side::last_row, side::first_column, side::last_column})
        for (const file_extent& e : extents_of(g, 0, 0, s))
          sides += disk.reading(static_cast<double>(e.size));
      // As many turns at once as there are buffers; on the average a wave is half as wide as at most.
      const double at_once =
          std::max(1.0, std::min(static_cast<double>(buffers), 0.5 * static_cast<double>(wave)));
      const double transfers = (values + fields) * disk.read_per_byte + values * disk.write_per_byte;
      return passes * n * std::max(transfers + sides, (reading + sides + computing + writing) / at_once) +
             ending;
    }
    case policy::in_core:
      return passes *
             (n * ((values + fields) * disk.read_per_byte + computing + values * disk.write_per_byte) +
              ending);
    default: {
      const auto k = static_cast<double>(plan.sweeps), of = std::ceil(passes / k);
      const double transfers = n * ((values + fields) * disk.read_per_byte + values * disk.write_per_byte);
      const double computed = points * k * kernel.chained / workers;
      const double unit = static_cast<double>(plan.tile_lines * g.tiles_across());
      return of * (std::max(transfers, computed) + unit * (reading + writing) + computed * unit / n + ending);
    }
  }
}

}  // namespace weft::inline WEFT_ABI::ooc::detail
