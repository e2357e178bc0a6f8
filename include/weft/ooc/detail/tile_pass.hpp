// SPDX-License-Identifier: BSL-1.0
// The policies that do one sweep in a pass: tile after tile, with two, three or more buffers.
#pragma once

#include <weft/flow/runtime.hpp>
#include <weft/ooc/detail/tile_kernel.hpp>
#include <weft/ooc/grid_file.hpp>

#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A pass of one sweep. The tiles are computed one after the other, in the order of their numbers. A tile
/// needs the buffer of the next one, for the column beyond its end, or the row beyond it where tiles are
/// whole rows; other tiles read the row beyond their end from the file.
template <class T, std::size_t Fields, class Kernel>
class tile_pass {
 public:
  /// Bytes of memory with so many buffers.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes, std::size_t buffers) {
    return boundary_bytes + frontier<T>::bytes(g) +
           buffers * (g.values_bytes() + g.fields_bytes() + row_bytes_(g)) +
           aligned(g.tiles() * 3 * task_bytes_);
  }

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  tile_pass(memory_budget& budget, grid_file<T, Fields>& grid, std::size_t buffers, const Kernel& kernel)
      : grid_(grid),
        geometry_(grid.geometry()),
        kernel_(kernel),
        buffers_(buffers),
        frontier_(budget, grid.geometry()) {
    for (buffer& b : buffers_) {
      b.values = aligned_buffer(budget, geometry_.values_bytes());
      b.fields = aligned_buffer(budget, geometry_.fields_bytes());
      if (row_bytes_(geometry_) != 0) b.south = aligned_buffer(budget, row_bytes_(geometry_));
    }
  }

  /// Does one sweep. `one_transfer`: a transfer starts when all that were forked before have ended;
  /// `one_step`: so does a computation. *Requires*: called in a task. *Throws*: what its tasks throw.
  /// `changes`: where the largest change of a value is noted, or null.
  void run(bool one_transfer, bool one_step, const largest_changes* changes) {
    frontier_.changes = changes;
    series_.emplace();
    tasks_ = 0;
    std::copy_n(grid_.north(), geometry_.columns + 2, elements<T>(frontier_.north));
    std::size_t read_so_far = 0;
    const auto disk_of = [&](std::size_t i) -> token& { return one_transfer ? disk_ : buffer_of_(i).own; };
    const auto read_to = [&](std::size_t end) {
      for (; read_so_far < std::min(end, geometry_.tiles()); ++read_so_far)
        read_(read_so_far, disk_of(read_so_far));
    };
    const std::size_t ahead = buffers_.size() - 1;
    read_to(ahead);
    for (std::size_t i = 0; i < geometry_.tiles(); ++i) {
      read_to(i + 1 + ahead);
      compute_(i, one_step ? disk_ : processor_);
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
  /// The place of the next task that transfers something.
  transfer_place next_() noexcept { return {&*series_, tasks_++}; }
  buffer& buffer_of_(std::size_t tile) noexcept { return buffers_[tile % buffers_.size()]; }

  void read_(std::size_t tile, token& when) {
    fork(
        {.name = "read a tile", .priority = 1, .event = true},
        [this, tile, place = next_()](buffer& b, token&) {
          grid_.read_values(tile, grid_.version(), b.values.data(), place);
          grid_.read_fields(tile, b.fields.data(), place);
          const std::size_t below = tile + geometry_.tiles_across();
          if (b.south.size() != 0 && below < geometry_.tiles())
            grid_.read_first_row(below, grid_.version(), b.south.data(), place);
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
    sweep_behind(geometry_, t, elements<T>(b.values), elements<T>(b.values), elements<T>(b.fields),
                 geometry_.field_pitch(t), south, east, frontier_, kernel_);
  }
  void write_(std::size_t tile, token& when) {
    fork(
        {.name = "write a tile", .priority = 1, .event = true},
        [this, tile, place = next_()](const buffer& b, token&) {
          grid_.write_values(tile, 1 - grid_.version(), b.values.data(), place);
        },
        read(borrow(buffer_of_(tile))), update(borrow(when)));
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  std::vector<buffer> buffers_;
  token disk_, processor_;  // not of run(): tasks use them also after it has thrown
  frontier<T> frontier_;
  std::optional<transfer_series> series_;
  std::uint64_t tasks_ = 0;  // that transfer something
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
