// SPDX-License-Identifier: BSL-1.0
// The policies that do one sweep in a pass: tile after tile, with two, three or more buffers.
#pragma once

#include <weft/flow/runtime.hpp>
#include <weft/ooc/detail/changes.hpp>
#include <weft/ooc/grid_file.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// What the sweep of a tile needs from outside it, and leaves for the tiles after it. Rows have columns + 2
/// elements, with those of the boundary.
template <class T>
struct frontier {
  aligned_buffer north;                      // the new values of the row above, over the whole grid
  aligned_buffer west;                       // the new values of the column before, of the rows of a tile
  aligned_buffer work;                       // a tile and a border of one around it
  const largest_changes* changes = nullptr;  // where the changes of values are wanted
};

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

/// One sweep over a tile: values from `from` to `to`, which may be the same; coefficients `field` elements
/// apart; `south` and `east(row)`: the old values beyond its end.
template <class T, class Kernel, class East>
void sweep_tile(const grid_geometry& g, const tile_shape& t, const T* from, T* to, const T* fields,
                std::size_t field, const T* south, East east, frontier<T>& f, const Kernel& kernel) {
  const std::size_t stride = t.columns + 2, pitch = g.pitch(t);
  T* const work = elements<T>(f.work);
  T* const north = elements<T>(f.north) + 1 + t.column;
  T* const west = elements<T>(f.west);
  const bool rows = g.layout != layout::optimized;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::copy_n(north, t.columns, work + 1);
  std::copy_n(south, t.columns, work + (t.rows + 1) * stride + 1);
  for (std::size_t r = 0; r < t.rows; ++r) {
    T* const row = work + (r + 1) * stride;
    row[0] = west[r];
    row[t.columns + 1] = east(r);
    if (rows)
      std::copy_n(from + r * pitch, t.columns, row + 1);
    else
      for (std::size_t c = 0; c < t.columns; ++c) row[c + 1] = from[g.place(t, r, c)];
  }
  for (std::size_t r = 0; r < t.rows; ++r)
    sweep_row(work + r * stride, work + (r + 1) * stride, work + (r + 2) * stride, t.columns,
              fields + r * pitch, field, kernel);
  if (f.changes != nullptr)
    for (std::size_t r = 0; r < t.rows; ++r)
      for (std::size_t c = 0; c < t.columns; ++c) {
        const double change =
            std::abs(double{work[(r + 1) * stride + c + 1]} - double{from[g.place(t, r, c)]});
        f.changes->see(0, change <= std::numeric_limits<double>::max() ? change : infinity);
      }
  std::copy_n(work + t.rows * stride + 1, t.columns, north);
  for (std::size_t r = 0; r < t.rows; ++r) {
    const T* const row = work + (r + 1) * stride + 1;
    west[r] = row[t.columns - 1];
    if (rows)
      std::copy_n(row, t.columns, to + r * pitch);
    else
      for (std::size_t c = 0; c < t.columns; ++c) to[g.place(t, r, c)] = row[c];
  }
}

/// A pass of one sweep. The tiles are computed one after the other, in the order of their numbers. A tile
/// needs the buffer of the next one, for the column beyond its end, or the row beyond it where tiles are
/// whole rows; other tiles read the row beyond their end from the file.
template <class T, std::size_t Fields, class Kernel>
class tile_pass {
 public:
  /// Bytes of memory with so many buffers.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes, std::size_t buffers) {
    return boundary_bytes + aligned((g.columns + 2) * sizeof(T)) + aligned(g.tile_rows * sizeof(T)) +
           aligned((g.tile_rows + 2) * (g.tile_columns + 2) * sizeof(T)) +
           buffers * (g.values_bytes() + g.fields_bytes() + row_bytes_(g)) +
           aligned(g.tiles() * 3 * task_bytes_);
  }

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  tile_pass(memory_budget& budget, grid_file<T, Fields>& grid, std::size_t buffers, const Kernel& kernel)
      : grid_(grid), geometry_(grid.geometry()), kernel_(kernel), buffers_(buffers) {
    for (buffer& b : buffers_) {
      b.values = aligned_buffer(budget, geometry_.values_bytes());
      b.fields = aligned_buffer(budget, geometry_.fields_bytes());
      if (row_bytes_(geometry_) != 0) b.south = aligned_buffer(budget, row_bytes_(geometry_));
    }
    frontier_.north = aligned_buffer(budget, (geometry_.columns + 2) * sizeof(T));
    frontier_.west = aligned_buffer(budget, geometry_.tile_rows * sizeof(T));
    frontier_.work =
        aligned_buffer(budget, (geometry_.tile_rows + 2) * (geometry_.tile_columns + 2) * sizeof(T));
  }

  /// Does one sweep. `one_transfer`: a transfer starts when all that were forked before have ended;
  /// `one_step`: so does a computation. *Requires*: called in a task. *Throws*: what its tasks throw.
  /// `changes`: where the largest change of a value is noted, or null.
  void run(bool one_transfer, bool one_step, const largest_changes* changes) {
    frontier_.changes = changes;
    std::copy_n(grid_.north(), geometry_.columns + 2, elements<T>(frontier_.north));
    token disk, processor;
    std::size_t read_so_far = 0;
    const auto disk_of = [&](std::size_t i) -> token& { return one_transfer ? disk : buffer_of_(i).own; };
    const auto read_to = [&](std::size_t end) {
      for (; read_so_far < std::min(end, geometry_.tiles()); ++read_so_far)
        read_(read_so_far, disk_of(read_so_far));
    };
    const std::size_t ahead = buffers_.size() - 1;
    read_to(ahead);
    for (std::size_t i = 0; i < geometry_.tiles(); ++i) {
      read_to(i + 1 + ahead);
      compute_(i, one_step ? disk : processor);
      write_(i, disk_of(i));
    }
    sync();
  }

 private:
  static constexpr std::size_t task_bytes_ = 512;
  struct token {};
  struct buffer {
    aligned_buffer values, fields, south;
    token own;
  };
  static std::size_t row_bytes_(const grid_geometry& g) noexcept {
    return g.tiles_across() == 1 ? 0 : aligned(g.tile_columns * sizeof(T));
  }
  buffer& buffer_of_(std::size_t tile) noexcept { return buffers_[tile % buffers_.size()]; }

  void read_(std::size_t tile, token& when) {
    fork(
        {.name = "read a tile", .priority = 1, .event = true},
        [this, tile](buffer& b, token&) {
          grid_.read_values(tile, grid_.version(), b.values.data());
          grid_.read_fields(tile, b.fields.data());
          const std::size_t below = tile + geometry_.tiles_across();
          if (b.south.size() != 0 && below < geometry_.tiles())
            grid_.read_first_row(below, grid_.version(), b.south.data());
        },
        update(borrow(buffer_of_(tile))), update(borrow(when)));
  }
  void compute_(std::size_t tile, token& when) {
    const bool last = tile + 1 == geometry_.tiles();
    const auto work = [this, tile](buffer& b, token&) { compute_now_(tile, b, buffer_of_(tile + 1)); };
    if (last)
      fork({.name = "sweep a tile"}, work, update(borrow(buffer_of_(tile))), update(borrow(when)));
    else
      fork(
          {.name = "sweep a tile"}, [work](buffer& b, token& t, const buffer&) { work(b, t); },
          update(borrow(buffer_of_(tile))), update(borrow(when)), read(borrow(buffer_of_(tile + 1))));
  }
  void compute_now_(std::size_t number, buffer& b, const buffer& next) {
    const tile_shape t = geometry_.tile(number);
    const bool bottom = t.row + t.rows == geometry_.rows, right = t.column + t.columns == geometry_.columns;
    if (t.column == 0) std::copy_n(grid_.west() + t.row, t.rows, elements<T>(frontier_.west));
    const T* const south = bottom                ? grid_.south() + 1 + t.column
                           : b.south.size() != 0 ? elements<T>(b.south)
                                                 : elements<T>(next.values);
    const tile_shape beside = right ? t : geometry_.tile(number + 1);
    const auto east = [&](std::size_t r) {
      return right ? grid_.east()[t.row + r] : elements<T>(next.values)[geometry_.place(beside, r, 0)];
    };
    sweep_tile<T>(geometry_, t, elements<T>(b.values), elements<T>(b.values), elements<T>(b.fields),
                  geometry_.field_pitch(t), south, east, frontier_, kernel_);
  }
  void write_(std::size_t tile, token& when) {
    fork(
        {.name = "write a tile", .priority = 1, .event = true},
        [this, tile](const buffer& b, token&) {
          grid_.write_values(tile, 1 - grid_.version(), b.values.data());
        },
        read(borrow(buffer_of_(tile))), update(borrow(when)));
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  std::vector<buffer> buffers_;
  frontier<T> frontier_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
