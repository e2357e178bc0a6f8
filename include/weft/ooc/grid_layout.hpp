// SPDX-License-Identifier: BSL-1.0
// Where the values and coefficients of a grid lie in its file.
#pragma once

#include <weft/base/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::inline WEFT_ABI::ooc {

/// How a grid lies in its file. A *tile* is the part of the grid that is read and written as a whole.
enum class layout : std::uint32_t {
  row_major,  ///< each field by itself, row after row; tiles are whole rows
  strips,     ///< tiles are whole rows; the coefficients of a tile lie together
  blocks,     ///< tiles are rectangles; the coefficients of a tile lie together
  optimized   ///< as blocks; first row, first column, centre, last column and last row each by itself
};

/// Unit of places and sizes in the file, bytes: direct transfers need no more on any device.
inline constexpr std::size_t file_alignment = 4096;

/// `bytes`, made larger so that it is a multiple of the alignment.
constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept {
  return (bytes + file_alignment - 1) / file_alignment * file_alignment;
}

/// A part of the grid: inner rows and columns, counted from 0.
struct tile_shape {
  std::size_t row;      ///< its first row
  std::size_t column;   ///< its first column
  std::size_t rows;     ///< how many rows
  std::size_t columns;  ///< how many columns
};

/// Bytes of the file, and where they come to in a buffer.
struct file_extent {
  std::uint64_t offset;  ///< in the file, bytes; aligned
  std::size_t size;      ///< bytes; aligned
  std::size_t at;        ///< in the buffer, bytes; aligned
};

/// The places of everything in the file of a grid of `rows` x `columns` inner points with `fields`
/// coefficients for each, of elements of `element` bytes. Two versions of the values alternate: a pass reads
/// one and writes the other.
struct grid_geometry {
  std::size_t rows;          ///< inner rows
  std::size_t columns;       ///< inner columns
  std::size_t fields;        ///< coefficients per point
  std::size_t element;       ///< bytes of an element
  ooc::layout layout;        ///< the order in the file
  std::size_t tile_rows;     ///< rows of a tile; the last ones have fewer
  std::size_t tile_columns;  ///< columns of a tile; the last ones have fewer
  std::size_t border = 1;    ///< rows and columns of the boundary, on each side

  /// Tiles from north to south.
  std::size_t tiles_down() const noexcept { return (rows + tile_rows - 1) / tile_rows; }
  /// Tiles from west to east.
  std::size_t tiles_across() const noexcept { return (columns + tile_columns - 1) / tile_columns; }
  /// All tiles; they are numbered row by row.
  std::size_t tiles() const noexcept { return tiles_down() * tiles_across(); }
  /// The part of the grid that a tile holds.
  tile_shape tile(std::size_t number) const noexcept {
    const std::size_t row = number / tiles_across() * tile_rows;
    const std::size_t column = number % tiles_across() * tile_columns;
    return {row, column, std::min(tile_rows, rows - row), std::min(tile_columns, columns - column)};
  }

  /// Elements from one row of a tile to the next, in a buffer. (Values in the layout `optimized` are not in
  /// rows.)
  std::size_t pitch(const tile_shape& t) const noexcept {
    return layout == layout::row_major ? row_bytes_() / element : t.columns;
  }
  /// Bytes of a buffer for the values of any tile.
  std::size_t values_bytes() const noexcept {
    if (layout == layout::row_major) return tile_rows * row_bytes_();
    return layout == layout::optimized ? part_({0, 0, tile_rows, tile_columns}, 5)
                                       : aligned(tile_rows * tile_columns * element);
  }
  /// Elements from one coefficient to the next one of the same point, in a buffer.
  std::size_t field_pitch(const tile_shape& t) const noexcept { return t.rows * pitch(t); }
  /// Bytes of a buffer for the coefficients of any tile.
  std::size_t fields_bytes() const noexcept {
    return layout == layout::row_major ? fields * tile_rows * row_bytes_()
                                       : aligned(fields * tile_rows * tile_columns * element);
  }

  /// Where the boundary lies: the northern and the southern rows with their corners, then the western and the
  /// eastern columns, without gaps.
  file_extent boundary() const noexcept {
    return {2 * file_alignment, aligned(2 * border * (rows + columns + 2 * border) * element), 0};
  }
  /// Where the values of a tile lie, of version 0 or 1.
  file_extent values(std::size_t number, unsigned version) const noexcept {
    const tile_shape t = tile(number);
    const std::uint64_t base = values_base_(version);
    switch (layout) {
      case layout::row_major:
        return {base + t.row * row_bytes_(), t.rows * row_bytes_(), 0};
      case layout::optimized:
        return {base + number * values_bytes(), part_(t, 5), 0};
      default:
        return {base + number * values_bytes(), aligned(t.rows * t.columns * element), 0};
    }
  }
  /// How many extents the coefficients of a tile have.
  std::size_t field_extents() const noexcept {
    return fields == 0 ? 0 : layout == layout::row_major ? fields : 1;
  }
  /// One of them.
  file_extent field_extent(std::size_t number, std::size_t which) const noexcept {
    const tile_shape t = tile(number);
    const std::uint64_t base = values_base_(2);
    if (layout != layout::row_major)
      return {base + number * fields_bytes(), aligned(fields * t.rows * t.columns * element), 0};
    const std::size_t bytes = t.rows * row_bytes_();
    return {base + (which * rows + t.row) * row_bytes_(), bytes, which * bytes};
  }
  /// Bytes of the whole file.
  std::uint64_t file_bytes() const noexcept {
    return values_base_(2) +
           (layout == layout::row_major ? fields * rows * row_bytes_() : tiles() * fields_bytes());
  }
  /// The least extent of the values of a tile that holds its first row. `at`: where the row begins in it,
  /// bytes.
  file_extent first_row(std::size_t number, unsigned version) const noexcept {
    const file_extent all = values(number, version);
    return {all.offset, std::min(all.size, aligned(tile(number).columns * element)), 0};
  }

  /// Where a point of a tile lies in the buffer of its values, in elements.
  std::size_t place(const tile_shape& t, std::size_t row, std::size_t column) const noexcept {
    if (layout != layout::optimized) return row * pitch(t) + column;
    const std::size_t inner = t.columns > 2 ? t.columns - 2 : 0;
    if (row == 0) return column;
    if (row == t.rows - 1) return part_(t, 4) / element + column;
    if (column == 0) return part_(t, 1) / element + row - 1;
    if (column == t.columns - 1) return part_(t, 3) / element + row - 1;
    return part_(t, 2) / element + (row - 1) * inner + column - 1;
  }
  /// Copies a row of a tile out of the buffer of its values.
  template <class T>
  void row_of_tile(const tile_shape& t, std::size_t row, const T* values, T* to) const noexcept {
    if (layout != layout::optimized)
      std::copy_n(values + row * pitch(t), t.columns, to);
    else
      for (std::size_t c = 0; c < t.columns; ++c) to[c] = values[place(t, row, c)];
  }
  /// The other way round.
  template <class T>
  void row_into_tile(const tile_shape& t, std::size_t row, const T* from, T* values) const noexcept {
    if (layout != layout::optimized)
      std::copy_n(from, t.columns, values + row * pitch(t));
    else
      for (std::size_t c = 0; c < t.columns; ++c) values[place(t, row, c)] = from[c];
  }

 private:
  std::size_t row_bytes_() const noexcept { return aligned(columns * element); }
  std::uint64_t values_base_(unsigned version) const noexcept {
    const std::uint64_t one = layout == layout::row_major ? rows * row_bytes_() : tiles() * values_bytes();
    return boundary().offset + boundary().size + version * one;
  }
  /// Where part `which` of a tile begins in the layout `optimized`; part 5 is the end.
  std::size_t part_(const tile_shape& t, int which) const noexcept {
    const std::size_t down = t.rows > 2 ? t.rows - 2 : 0, across = t.columns > 2 ? t.columns - 2 : 0;
    const std::size_t sizes[] = {t.columns, down, down * across, t.columns > 1 ? down : 0,
                                 t.rows > 1 ? t.columns : 0};
    std::size_t begin = 0;
    for (int i = 0; i < which; ++i) begin += aligned(sizes[i] * element);
    return begin;
  }
};

}  // namespace weft::inline WEFT_ABI::ooc
