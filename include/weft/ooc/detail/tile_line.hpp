// SPDX-License-Identifier: BSL-1.0
// One sweep over a row of tiles, with a kernel that sees a rectangle.
#pragma once

#include <weft/base/error.hpp>
#include <weft/ooc/detail/row_sweeps.hpp>
#include <weft/ooc/grid_file.hpp>

#include <array>
#include <stop_token>

namespace weft::inline WEFT_ABI::ooc::detail {

/// The part of a tile's values that holds so many of its rows, at its place in the buffer of the whole tile.
/// In the layout `optimized`, where rows lie scattered, it is the whole tile.
inline file_extent rows_of(const grid_geometry& g, std::size_t tile, unsigned version, std::size_t first,
                           std::size_t count) noexcept {
  const file_extent all = g.values(tile, version);
  if (g.layout == layout::optimized) return all;
  const std::size_t row = g.pitch(g.tile(tile)) * g.element;
  const std::size_t begin = first * row / file_alignment * file_alignment;
  return {all.offset + begin, std::min<std::size_t>(aligned((first + count) * row), all.size) - begin, begin};
}

/// Where the coefficients of a tile lie.
template <class T>
struct tile_fields {
  const T* first;
  std::size_t field;  // elements from one coefficient to the next one of the same point
};

/// A row of tiles, here a *line*, in plain rows, with the rows north and south of it that the kernel sees:
/// the former have new values, the latter old ones.
/// *Requires*: tiles have as many rows as the kernel sees, or there is one line.
template <class T, std::size_t Fields, window_kernel Kernel>
class tile_line {
  static constexpr reach sees = Kernel::reach;

 public:
  /// Bytes of memory.
  static std::size_t bytes(const grid_geometry& g) noexcept {
    return aligned((sees.north + g.tile_rows + sees.south) * (g.columns + 2 * g.border) * sizeof(T));
  }
  /// *Throws*: std::bad_alloc if the budget does not suffice.
  tile_line(memory_budget& budget, const grid_file<T, Fields>& grid)
      : grid_(grid), geometry_(grid.geometry()), memory_(budget, bytes(geometry_)) {}

  /// Goes to a line, and takes in the boundary around it.
  void begin(std::size_t line) {
    first_ = line * geometry_.tile_rows;
    rows_ = std::min(geometry_.tile_rows, geometry_.rows - first_);
    const std::size_t border = geometry_.border, columns = geometry_.columns;
    for (std::size_t r = 0; r < sees.north + rows_ + sees.south; ++r) {
      const std::size_t row = first_ + border + r - sees.north;  // of the grid with its boundary
      T* const to = at_(r) - border;
      if (row < border || row >= geometry_.rows + border) {
        std::copy_n(grid_.border_row(row), columns + 2 * border, to);
        continue;
      }
      for (std::size_t b = 0; b < border; ++b) {
        to[b] = grid_.border_column(b)[row - border];
        to[border + columns + b] = grid_.border_column(columns + border + b)[row - border];
      }
    }
  }
  /// Takes in the values of a tile of this line, or those of a tile beside it that the kernel sees.
  void take(std::size_t tile, const T* values) {
    const tile_shape t = geometry_.tile(tile);
    for (std::size_t r = 0; r < t.rows; ++r) {
      const std::size_t row = t.row + r + sees.north - first_;  // wraps around where it is too far north
      if (row >= sees.north + rows_ + sees.south) continue;
      geometry_.row_of_tile(t, r, values, at_(row) + t.column);
    }
  }
  /// Sweeps over the line. `fields(tile)`: where its coefficients lie; `stop`: ends it, with cancelled,
  /// before the next row of a tile; `changes`: where the largest change of a value is noted, or null.
  template <class FieldsOf>
  void sweep(const FieldsOf& fields, const Kernel& kernel, const std::stop_token& stop,
             const largest_changes* changes) {
    if (changes != nullptr)
      changes->see(0, sweep_<true>(fields, kernel, stop));
    else
      sweep_<false>(fields, kernel, stop);
  }
  /// Gives the values of a tile of the line.
  void give(std::size_t tile, T* values) const {
    const tile_shape t = geometry_.tile(tile);
    for (std::size_t r = 0; r < t.rows; ++r)
      geometry_.row_into_tile<T>(t, r, at_(sees.north + r) + t.column, values);
  }

 private:
  /// The first inner column of row `r`; row `sees.north` is the first one of the line.
  T* at_(std::size_t r) const noexcept {
    return elements<T>(memory_) + r * (geometry_.columns + 2 * geometry_.border) + geometry_.border;
  }
  template <bool Watched, class FieldsOf>
  double sweep_(const FieldsOf& fields, const Kernel& kernel, const std::stop_token& stop) {
    const std::size_t across = geometry_.tiles_across(), tile = first_ / geometry_.tile_rows * across;
    double largest = 0;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t j = 0; j < across; ++j) {
        if (stop.stop_requested()) throw cancelled();
        const tile_shape t = geometry_.tile(tile + j);
        const tile_fields<T> of = fields(tile + j);
        std::array<const T*, sees.north + 1 + sees.south> rows;
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = at_(r + i) + t.column;
        largest = std::max(
            largest, sweep_columns<Watched>(rows.data() + sees.north, at_(sees.north + r) + t.column, 0,
                                            t.columns, of.first + r * geometry_.pitch(t), of.field, kernel));
      }
    return largest;
  }

  const grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  aligned_buffer memory_;
  std::size_t first_ = 0, rows_ = 0;  // of the line
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
