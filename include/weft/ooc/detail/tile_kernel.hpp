// SPDX-License-Identifier: BSL-1.0
// One sweep over one tile, with what surrounds it.
#pragma once

#include <weft/ooc/aligned_buffer.hpp>
#include <weft/ooc/detail/changes.hpp>
#include <weft/ooc/grid_layout.hpp>

namespace weft::inline WEFT_ABI::ooc::detail {

/// The coefficients of one point.
template <class T>
struct point_coefficients {
  const T* first;
  std::size_t pitch;  // from one to the next
  const T& operator[](std::size_t i) const noexcept { return first[i * pitch]; }
};

/// One sweep over a row: `columns` points, and a column before and behind them; coefficients `field` elements
/// apart.
template <class T, class Kernel>
void sweep_row(const T* north, T* row, const T* south, std::size_t columns, const T* fields,
               std::size_t field, const Kernel& kernel) {
  for (std::size_t c = 1; c <= columns; ++c)
    row[c] = kernel(north[c], row[c - 1], row[c], row[c + 1], south[c],
                    point_coefficients<T>{fields + (c - 1), field});
}

/// The values around a tile: functions of a column, or of a row, of the tile.
template <class North, class West, class East, class South>
struct border {
  North north;
  West west;
  East east;
  South south;
};

/// Elements of the array in which a tile of that size is computed: with a border of one around.
inline std::size_t work_elements(std::size_t rows, std::size_t columns) noexcept {
  return (rows + 2) * (columns + 2);
}

/// One sweep over a tile: values from `from` to `to`, which may be the same; coefficients `field` elements
/// apart. `work`: for work_elements of the tile. `changes`: where the largest change of a value is noted, or
/// null.
template <class T, class Border, class Kernel>
void sweep_tile(const grid_geometry& g, const tile_shape& t, const T* from, T* to, const T* fields,
                std::size_t field, const Border& around, T* work, const Kernel& kernel,
                const largest_changes* changes) {
  const std::size_t stride = t.columns + 2, pitch = g.pitch(t);
  const bool rows = g.layout != layout::optimized;
  T* const below = work + (t.rows + 1) * stride;
  for (std::size_t c = 0; c < t.columns; ++c) {
    work[c + 1] = around.north(c);
    below[c + 1] = around.south(c);
  }
  for (std::size_t r = 0; r < t.rows; ++r) {
    T* const row = work + (r + 1) * stride;
    row[0] = around.west(r);
    row[t.columns + 1] = around.east(r);
    if (rows)
      std::copy_n(from + r * pitch, t.columns, row + 1);
    else
      for (std::size_t c = 0; c < t.columns; ++c) row[c + 1] = from[g.place(t, r, c)];
  }
  for (std::size_t r = 0; r < t.rows; ++r)
    sweep_row(work + r * stride, work + (r + 1) * stride, work + (r + 2) * stride, t.columns,
              fields + r * pitch, field, kernel);
  double largest = 0;
  for (std::size_t r = 0; r < t.rows && changes != nullptr; ++r)
    for (std::size_t c = 0; c < t.columns; ++c)
      largest = larger_change(largest, double{work[(r + 1) * stride + c + 1] - from[g.place(t, r, c)]});
  if (changes != nullptr) changes->see(0, largest);
  for (std::size_t r = 0; r < t.rows; ++r) {
    const T* const row = work + (r + 1) * stride + 1;
    if (rows)
      std::copy_n(row, t.columns, to + r * pitch);
    else
      for (std::size_t c = 0; c < t.columns; ++c) to[g.place(t, r, c)] = row[c];
  }
}

/// What tiles that are computed in the order of their numbers leave for those behind them.
template <class T>
struct frontier {
  aligned_buffer north;  // new values of the row above, over the whole grid, from column 0 of the boundary on
  aligned_buffer west;   // new values of the column before, of the rows of a tile
  aligned_buffer work;   // see sweep_tile
  const largest_changes* changes = nullptr;  // see sweep_tile

  /// Bytes of memory for a grid.
  static std::size_t bytes(const grid_geometry& g) noexcept {
    return aligned((g.columns + 2) * sizeof(T)) + aligned(g.tile_rows * sizeof(T)) +
           aligned(work_elements(g.tile_rows, g.tile_columns) * sizeof(T));
  }
  frontier(memory_budget& budget, const grid_geometry& g)
      : north(budget, (g.columns + 2) * sizeof(T)),
        west(budget, g.tile_rows * sizeof(T)),
        work(budget, work_elements(g.tile_rows, g.tile_columns) * sizeof(T)) {}
};

/// As sweep_tile, between the frontier and the old values beyond the end of the tile: `south`, a row, and
/// `east(row)`.
template <class T, class Kernel, class East>
void sweep_behind(const grid_geometry& g, const tile_shape& t, const T* from, T* to, const T* fields,
                  std::size_t field, const T* south, East east, frontier<T>& f, const Kernel& kernel) {
  T* const north = elements<T>(f.north) + 1 + t.column;
  T* const west = elements<T>(f.west);
  T* const work = elements<T>(f.work);
  const border around{[north](std::size_t c) { return north[c]; }, [west](std::size_t r) { return west[r]; },
                      east, [south](std::size_t c) { return south[c]; }};
  sweep_tile(g, t, from, to, fields, field, around, work, kernel, f.changes);
  const std::size_t stride = t.columns + 2;
  std::copy_n(work + t.rows * stride + 1, t.columns, north);
  for (std::size_t r = 0; r < t.rows; ++r) west[r] = work[(r + 1) * stride + t.columns];
}

}  // namespace weft::inline WEFT_ABI::ooc::detail
