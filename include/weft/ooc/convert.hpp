// SPDX-License-Identifier: BSL-1.0
// Copies a grid into a file with another layout.
#pragma once

#include <weft/ooc/grid_file.hpp>

namespace weft::inline WEFT_ABI::ooc {

/// Fills a grid file with the values, the coefficients and the number of sweeps of another one, which may
/// have another layout and other tiles. *Throws*: weft::error if the grids have different sizes; as
/// grid_file::fill, and then `to` is not valid. *Suspends*: as runtime::run. *Cost*: both files pass through
/// memory once; it holds those tiles of `from` from which a row of tiles of `to` is made.
template <class T, std::size_t Fields>
void convert(runtime& rt, grid_file<T, Fields>& from, grid_file<T, Fields>& to) {
  from.check_valid();
  const grid_geometry& g = from.geometry();
  const grid_geometry& n = to.geometry();
  if (n.rows != g.rows || n.columns != g.columns || n.border != g.border) {
    const auto shape = [](const grid_geometry& of) {
      return std::to_string(of.rows) + " x " + std::to_string(of.columns) + " points and a border of " +
             std::to_string(of.border);
    };
    throw error("weft: a grid of " + shape(g) + " is converted to one of " + shape(n));
  }
  const std::size_t border = g.border;
  to.begin_fill([&](std::size_t r, std::size_t c, int) {
    return r < border || r >= g.rows + border ? from.border_row(r)[c] : from.border_column(c)[r - border];
  });

  struct tile {
    aligned_buffer values, fields;
  };
  memory_budget memory;
  std::vector<tile> held;  // of the old file, from tile `first` on
  std::size_t first = 0;
  const std::size_t across = g.tiles_across();
  const auto element = [&](std::size_t r, std::size_t c, int field) {
    const std::size_t number = (r - border) / g.tile_rows * across + (c - border) / g.tile_columns;
    const tile_shape t = g.tile(number);
    const tile& in = held[number - first];
    const std::size_t row = r - border - t.row, column = c - border - t.column;
    return field == 0 ? elements<T>(in.values)[g.place(t, row, column)]
                      : elements<T>(in.fields)[static_cast<std::size_t>(field - 1) * g.field_pitch(t) +
                                               row * g.pitch(t) + column];
  };
  for (std::size_t line = 0; line < n.tiles_down(); ++line) {
    const std::size_t top = line * n.tile_rows, bottom = std::min(top + n.tile_rows, n.rows);
    first = top / g.tile_rows * across;
    held.resize(((bottom - 1) / g.tile_rows + 1) * across - first);
    rt.run([&] {
      for (std::size_t i = 0; i < held.size(); ++i)
        fork({.name = "read a tile", .event = true}, [&, i] {
          if (held[i].values.size() == 0) {
            held[i].values = aligned_buffer(memory, g.values_bytes());
            held[i].fields = aligned_buffer(memory, g.fields_bytes());
          }
          from.read_values(first + i, from.version(), held[i].values.data());
          from.read_fields(first + i, held[i].fields.data());
        });
    });
    to.fill_tiles(rt, line * n.tiles_across(), (line + 1) * n.tiles_across(), element);
  }
  to.end_fill(from.sweeps());
}

}  // namespace weft::inline WEFT_ABI::ooc
