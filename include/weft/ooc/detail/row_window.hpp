// SPDX-License-Identifier: BSL-1.0
// A window of rows of a grid, that moves over a file: for kernels that see a rectangle.
#pragma once

#include <weft/ooc/grid_file.hpp>

#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Rows of tiles, which are the strips here, are loaded and stored in units of `unit_strips`; unit u lies
/// where unit u + units will. It is the window of row_sweeps. *Thread safety*: the caller orders those who
/// load, compute and store.
template <class T, std::size_t Fields>
class row_window {
 public:
  using value_type = T;

  /// Rows of a strip.
  static std::size_t strip_rows(const grid_geometry& g) noexcept { return g.tile_rows; }
  /// Bytes of memory for a window.
  static std::size_t bytes(const grid_geometry& g, std::size_t unit_strips, std::size_t units) {
    const std::size_t rows = unit_strips * g.tile_rows;
    return units * (aligned(rows * (g.columns + 2 * g.border) * sizeof(T)) +
                    aligned(Fields * rows * g.columns * sizeof(T)));
  }

  row_window(memory_budget& budget, const grid_file<T, Fields>& grid, std::size_t unit_strips,
             std::size_t units)
      : grid_(grid),
        geometry_(grid.geometry()),
        unit_rows_(unit_strips * geometry_.tile_rows),
        stride_(geometry_.columns + 2 * geometry_.border) {
    for (std::size_t i = 0; i < units; ++i) {
      values_.emplace_back(budget, unit_rows_ * stride_ * sizeof(T));
      fields_.emplace_back(budget, Fields * unit_rows_ * geometry_.columns * sizeof(T));
    }
  }

  const grid_geometry& geometry() const noexcept { return geometry_; }
  /// An inner row, at its first inner column.
  T* inner_row(std::size_t row) const noexcept {
    return elements<T>(values_[row / unit_rows_ % values_.size()]) + row % unit_rows_ * stride_ +
           geometry_.border;
  }
  /// The row that lies `south` rows from an inner row, at its first inner column; maybe of the border.
  const T* row(std::size_t inner, std::ptrdiff_t south) const noexcept {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(inner) + south;
    if (row >= 0 && row < static_cast<std::ptrdiff_t>(geometry_.rows))
      return inner_row(static_cast<std::size_t>(row));
    const auto border = static_cast<std::ptrdiff_t>(geometry_.border);
    return grid_.border_row(static_cast<std::size_t>(row + border)) + border;
  }
  /// The first coefficients of an inner row; the next ones are field_pitch() elements behind.
  const T* row_fields(std::size_t row) const noexcept {
    return elements<T>(fields_[row / unit_rows_ % fields_.size()]) + row % unit_rows_ * geometry_.columns;
  }
  std::size_t field_pitch() const noexcept { return unit_rows_ * geometry_.columns; }

  /// Takes in the values and coefficients of a tile.
  void load(std::size_t tile, const std::byte* values, const std::byte* fields) {
    const tile_shape t = geometry_.tile(tile);
    const T* const v = reinterpret_cast<const T*>(values);
    const T* const f = reinterpret_cast<const T*>(fields);
    const std::size_t pitch = geometry_.pitch(t), field = geometry_.field_pitch(t);
    for (std::size_t r = 0; r < t.rows; ++r) {
      T* const to = inner_row(t.row + r);
      geometry_.row_of_tile(t, r, v, to + t.column);
      T* const to_fields = const_cast<T*>(row_fields(t.row + r)) + t.column;
      for (std::size_t i = 0; i < Fields; ++i)
        std::copy_n(f + i * field + r * pitch, t.columns, to_fields + i * field_pitch());
      const std::size_t border = geometry_.border, columns = geometry_.columns;
      for (std::size_t b = 0; b < border; ++b) {
        if (t.column == 0)
          to[static_cast<std::ptrdiff_t>(b) - static_cast<std::ptrdiff_t>(border)] =
              grid_.border_column(b)[t.row + r];
        if (t.column + t.columns == columns)
          to[columns + b] = grid_.border_column(columns + border + b)[t.row + r];
      }
    }
  }
  /// Gives the values of a tile.
  void store(std::size_t tile, std::byte* values) const {
    const tile_shape t = geometry_.tile(tile);
    for (std::size_t r = 0; r < t.rows; ++r)
      geometry_.row_into_tile<T>(t, r, inner_row(t.row + r) + t.column, reinterpret_cast<T*>(values));
  }

 private:
  const grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  std::size_t unit_rows_, stride_;
  std::vector<aligned_buffer> values_, fields_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
