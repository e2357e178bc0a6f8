// SPDX-License-Identifier: BSL-1.0
// The policy in_core: the file is mapped, and the operating system reads and writes its pages.
#pragma once

#include <weft/ooc/detail/mapped_grid.hpp>
#include <weft/ooc/detail/tile_kernel.hpp>
#include <weft/ooc/detail/tile_line.hpp>

#include <stop_token>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A pass of one sweep over mapped memory, tile by tile; the baseline of the paper.
/// *Source*: Caron, Desprez, Suter 2004, section 5.
template <class T, std::size_t Fields, class Kernel>
class mapped_pass {
 public:
  /// Bytes of memory besides the mapped pages.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes) {
    return boundary_bytes + frontier<T>::bytes(g);
  }
  /// *Throws*: std::system_error if the file cannot be mapped; std::bad_alloc.
  mapped_pass(memory_budget& budget, grid_file<T, Fields>& grid, const Kernel& kernel)
      : grid_(grid), kernel_(kernel), frontier_(budget, grid.geometry()), mapped_(grid) {}

  /// Does one sweep. `stop`: ends it before the next tile; `changes`: as tile_pass::run.
  /// *Throws*: std::system_error, with path and offset; cancelled if it ends early, without waiting for the
  /// device.
  void run(const std::stop_token& stop, const largest_changes* changes) {
    frontier_.changes = changes;
    const grid_geometry& g = grid_.geometry();
    const unsigned before = grid_.version(), after = 1 - before;
    std::copy_n(grid_.north(), g.columns + 2, elements<T>(frontier_.north));
    mapped_.read(g.values(0, before));
    for (std::size_t i = 0; i < g.tiles(); ++i) {
      if (stop.stop_requested()) throw cancelled();
      const std::size_t below = i + g.tiles_across();
      if (i + 1 < g.tiles()) mapped_.read(g.values(i + 1, before));
      if (below < g.tiles()) mapped_.read(g.first_row(below, before));
      mapped_.read_fields_and_write(i, after);
      const tile_shape t = g.tile(i);
      if (t.column == 0) std::copy_n(grid_.west() + t.row, t.rows, elements<T>(frontier_.west));
      const T* const south = below < g.tiles() ? mapped_.values(below, before) : grid_.south() + 1 + t.column;
      const bool right = t.column + t.columns == g.columns;
      const tile_shape beside = right ? t : g.tile(i + 1);
      const auto east = [&](std::size_t r) {
        return right ? grid_.east()[t.row + r] : mapped_.values(i + 1, before)[g.place(beside, r, 0)];
      };
      sweep_behind(g, t, mapped_.values(i, before), mapped_.values(i, after), mapped_.fields(i),
                   mapped_.field_pitch(i), south, east, frontier_, kernel_);
    }
    mapped_.sync();
  }

 private:
  grid_file<T, Fields>& grid_;
  const Kernel& kernel_;
  frontier<T> frontier_;
  mapped_grid<T, Fields> mapped_;
};

/// The same for kernels that see a rectangle, one row of tiles after the other.
template <class T, std::size_t Fields, window_kernel Kernel>
class mapped_pass<T, Fields, Kernel> {
  using line = tile_line<T, Fields, Kernel>;

 public:
  /// Bytes of memory besides the mapped pages.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes) {
    return boundary_bytes + line::bytes(g);
  }
  /// *Throws*: std::system_error if the file cannot be mapped; std::bad_alloc.
  mapped_pass(memory_budget& budget, grid_file<T, Fields>& grid, const Kernel& kernel)
      : grid_(grid), kernel_(kernel), line_(budget, grid), mapped_(grid) {}

  /// Does one sweep; `stop`: ends it before the next row of a tile. As for four neighbours.
  void run(const std::stop_token& stop, const largest_changes* changes) {
    const grid_geometry& g = grid_.geometry();
    const unsigned before = grid_.version(), after = 1 - before;
    const std::size_t across = g.tiles_across();
    const auto take = [&](std::size_t tile, unsigned version) {
      mapped_.read(g.values(tile, version));
      line_.take(tile, mapped_.values(tile, version));
    };
    for (std::size_t first = 0; first < g.tiles(); first += across) {
      line_.begin(first / across);
      for (std::size_t i = first; i < first + across; ++i) {
        if (i >= across) take(i - across, after);
        take(i, before);
        if (i + across < g.tiles()) take(i + across, before);
        mapped_.read_fields_and_write(i, after);
      }
      line_.sweep(
          [this](std::size_t tile) {
            return tile_fields<T>{mapped_.fields(tile), mapped_.field_pitch(tile)};
          },
          kernel_, stop, changes);
      for (std::size_t i = first; i < first + across; ++i) line_.give(i, mapped_.values(i, after));
    }
    mapped_.sync();
  }

 private:
  grid_file<T, Fields>& grid_;
  const Kernel& kernel_;
  line line_;
  mapped_grid<T, Fields> mapped_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
