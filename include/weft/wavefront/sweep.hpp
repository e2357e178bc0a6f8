// SPDX-License-Identifier: BSL-1.0
// Sweeps over a grid in place, in which a point is computed from its northern and western neighbours of the
// same sweep and from its southern and eastern ones of the sweep before: many sweeps chained in tiles, in
// vectors.
#pragma once

#include <weft/wavefront/chained_sweeps.hpp>
#include <weft/wavefront/skewed.hpp>
#include <weft/wavefront/tiles.hpp>

namespace weft::inline WEFT_ABI::wavefront {

/// Executes `sweeps` in-place sweeps over the grid. `kernel(north, west, centre, east, south, coefficients)`
/// gets vectors, whose lanes are points, and returns the new values; it is also called for lanes outside the
/// grid, whose results are discarded. The results are bit-identical to those of the plain loops over sweeps,
/// rows and columns if the compiler fuses no operations (-ffp-contract=off).
/// *Requires*: the kernel has no side effects and does not throw.
/// *Throws*: as for_each_tile.
/// *Suspends*: as runtime::run.
/// *Source*: time skewing; docs/explanation/wavefronts.md.
template <class Grid, class Kernel>
void sweep(runtime& rt, Grid& grid, std::size_t sweeps, const Kernel& kernel,
           const sweep_options& options = {}) {
  if (grid.shape().rows == 0 || grid.shape().columns == 0) return;
  const std::size_t most = std::max<std::size_t>(options.chained, 1);
  while (sweeps != 0) {
    const std::size_t now = std::min(sweeps, most);
    const chained_sweeps<Grid, Kernel> chain(grid, now, kernel, options);
    for_each_tile(rt, chain.rows(), chain.columns(),
                  [&chain](std::size_t row, std::size_t column) { chain.tile(row, column); });
    sweeps -= now;
  }
}

/// The same on the calling thread alone, without a runtime.
template <class Grid, class Kernel>
void sweep(Grid& grid, std::size_t sweeps, const Kernel& kernel, const sweep_options& options = {}) {
  if (grid.shape().rows == 0 || grid.shape().columns == 0) return;
  const std::size_t most = std::max<std::size_t>(options.chained, 1);
  while (sweeps != 0) {
    const std::size_t now = std::min(sweeps, most);
    const chained_sweeps<Grid, Kernel> chain(grid, now, kernel, options);
    for (std::size_t row = 0; row < chain.rows(); ++row)
      for (std::size_t column = 0; column < chain.columns(); ++column) chain.tile(row, column);
    sweeps -= now;
  }
}

}  // namespace weft::inline WEFT_ABI::wavefront
