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
#include <cmath>
#include <functional>

namespace weft::inline WEFT_ABI::ooc::detail {

/// The speed of the disk with so many transfers at once, of so many bytes each.
using speed_at = std::function<disk_speed(unsigned, double)>;

/// The time of the transfers of a tile, one after the other, as far as they do not pass at the same time.
struct tile_times {
  double reading, writing;
  tile_times(const grid_geometry& g, unsigned at_once, const speed_at& speed) {
    const auto values = static_cast<double>(g.values(0, 0).size);
    const disk_speed disk = speed(at_once, values);
    reading = disk.reading(values);
    writing = disk.writing(values);
    for (std::size_t i = 0; i < g.field_extents(); ++i) {
      const auto bytes = static_cast<double>(g.field_extent(0, i).size);
      reading += speed(at_once, bytes).reading(bytes);
    }
  }
};

/// What the sweeps will take, seconds. `plan`: of the policy chained; `turns`: of the policy overlay;
/// `in_flight`: how many transfers there are at once, at most.
/// *Source*: Caron, Desprez, Suter 2004, equation 12, for one disk; docs/explanation/out-of-core.md.
inline double predict(policy p, const grid_geometry& g, std::size_t sweeps, const chained_plan& plan,
                      const overlay_plan& turns, unsigned workers, unsigned in_flight, const speed_at& speed,
                      const kernel_speed& kernel) {
  const auto n = static_cast<double>(g.tiles()), passes = static_cast<double>(sweeps);
  const double points = static_cast<double>(g.rows) * static_cast<double>(g.columns);
  // A tile that is read alone has as many transfers at once as it has parts.
  const unsigned parts = std::min(1 + static_cast<unsigned>(g.field_extents()), in_flight);
  const tile_times alone(g, p == policy::in_core ? 1 : parts, speed);
  const double computing = points / n * kernel.plain;
  const double ending = 4 * speed(1, file_alignment).writing(file_alignment);  // a header, and waiting
  if (p == policy::basic) return passes * (n * (alone.reading + computing + alone.writing) + ending);
  if (p == policy::in_core) {  // a mapped page is read before it is written
    const auto bytes = static_cast<double>(g.values(0, 0).size);
    return passes *
           (n * (alone.reading + speed(1, bytes).reading(bytes) + computing + alone.writing) + ending);
  }
  if (p == policy::three_buffers)
    return passes *
           (n * std::max(alone.reading + alone.writing, computing) + alone.reading + computing + ending);
  const tile_times many(g, in_flight, speed);
  const double transfers = many.reading + many.writing;
  if (p == policy::pool)
    return passes * (n * std::max(transfers, computing) + alone.reading + computing + alone.writing + ending);
  if (p == policy::overlay) {
    double sides = 0, sides_alone = 0;  // of a turn
    for (const std::size_t size : turns.sides) {
      const auto bytes = static_cast<double>(size);
      sides += speed(in_flight, bytes).reading(bytes);
      sides_alone += speed(parts, bytes).reading(bytes);
    }
    const auto tiles = static_cast<double>(turns.tiles);
    // As many turns at once as there are buffers; and all turns of a pass take at least as many steps as
    // the last tile is behind the first one in the first sweep, and two for each further sweep.
    const auto k = static_cast<double>(turns.sweeps);
    const std::size_t turns_across = g.tiles_across() / turns.tiles;
    const double steps = static_cast<double>(g.tiles_down() + turns_across - 1) + 2 * (k - 1);
    const double at_once = std::min(static_cast<double>(turns.buffers), k * n / tiles / steps);
    return passes * n *
               std::max({transfers + sides / tiles, computing / workers,
                         (alone.reading + sides_alone / tiles + computing + alone.writing) / at_once}) +
           std::ceil(passes / k) * ending;
  }
  const double unit = static_cast<double>(plan.tile_lines * g.tiles_across());
  return model::chained{.sweeps = passes,
                        .together = static_cast<double>(plan.sweeps),
                        .processors = static_cast<double>(workers),
                        .units = n / unit,
                        .transfers = n * transfers,
                        .first_read = unit * many.reading,
                        .last_write = unit * many.writing,
                        .computing = points * kernel.chained,
                        .ending = ending}
      .total();
}

}  // namespace weft::inline WEFT_ABI::ooc::detail
