// SPDX-License-Identifier: BSL-1.0
// The time that sweeps over a grid file will take, by policy.
#pragma once

#include <weft/ooc/calibration.hpp>
#include <weft/ooc/detail/chained_pass.hpp>
#include <weft/ooc/detail/overlay_pass.hpp>
#include <weft/ooc/detail/tile_pass.hpp>
#include <weft/ooc/model.hpp>
#include <weft/ooc/sweep_options.hpp>

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>

namespace weft::inline WEFT_ABI::ooc::detail {

/// What the sweeps will take, seconds. `plan`: of the policy chained; `turns`: of the policy overlay;
/// `speed(depth)`: of the disk with so many transfers at once, `in_flight` at most.
/// *Source*: Caron, Desprez, Suter 2004, equation 12, for one disk; docs/explanation/out-of-core.md.
inline double predict(policy p, const grid_geometry& g, std::size_t sweeps, const chained_plan& plan,
                      const overlay_plan& turns, unsigned workers, unsigned in_flight,
                      const std::function<disk_speed(unsigned)>& speed, const kernel_speed& kernel) {
  const auto n = static_cast<double>(g.tiles()), passes = static_cast<double>(sweeps);
  const double points = static_cast<double>(g.rows) * static_cast<double>(g.columns);
  const auto values = static_cast<double>(g.values(0, 0).size);
  double fields = 0;
  for (std::size_t i = 0; i < g.field_extents(); ++i)
    fields += static_cast<double>(g.field_extent(0, i).size);
  const auto requests = 1 + static_cast<unsigned>(g.field_extents());
  const bool alone = p == policy::basic || p == policy::three_buffers || p == policy::in_core;
  const disk_speed disk = speed(p == policy::in_core ? 1 : std::min(alone ? requests : UINT_MAX, in_flight));
  const double reading = requests * disk.read_latency + (values + fields) * disk.read_per_byte;
  const double writing = disk.writing(values);
  const double computing = points / n * kernel.plain;
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
      double sides = 0;  // of a turn
      for (const std::size_t bytes : turns.sides) sides += disk.reading(static_cast<double>(bytes));
      const auto tiles = static_cast<double>(turns.tiles);
      // As many turns at once as there are buffers; and all turns of a pass take at least as many steps as
      // the last tile is behind the first one in the first sweep, and two for each further sweep.
      const auto k = static_cast<double>(turns.sweeps);
      const double steps =
          static_cast<double>(g.tiles_down() + g.tiles_across() / turns.tiles - 1) + 2 * (k - 1);
      const double at_once = std::min(static_cast<double>(turns.buffers), k * n / tiles / steps);
      const double transfers = (values + fields) * disk.read_per_byte + values * disk.write_per_byte;
      return passes * n *
                 std::max({transfers + sides / tiles, computing / workers,
                           (reading + sides / tiles + computing + writing) / at_once}) +
             std::ceil(passes / k) * ending;
    }
    case policy::in_core:
      return passes *
             (n * ((values + fields) * disk.read_per_byte + computing + values * disk.write_per_byte) +
              ending);
    default: {
      const double unit = static_cast<double>(plan.tile_lines * g.tiles_across());
      return model::chained{
          .sweeps = passes,
          .together = static_cast<double>(plan.sweeps),
          .processors = static_cast<double>(workers),
          .units = n / unit,
          .transfers = n * ((values + fields) * disk.read_per_byte + values * disk.write_per_byte),
          .first_read = unit * reading,
          .last_write = unit * writing,
          .computing = points * kernel.chained,
          .ending = ending}
          .total();
    }
  }
}

}  // namespace weft::inline WEFT_ABI::ooc::detail
