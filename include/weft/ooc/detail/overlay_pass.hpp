// SPDX-License-Identifier: BSL-1.0
// The policy overlay: one recurrent task with ordered locks for each tile; sweeps follow each other tile by
// tile.
#pragma once

#include <weft/ooc/detail/tile_kernel.hpp>
#include <weft/ooc/grid_file.hpp>
#include <weft/orwl/definitions.hpp>
#include <weft/orwl/overlay.hpp>

#include <deque>
#include <mutex>
#include <ostream>
#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// A side of a tile.
enum class side { first_row, last_row, first_column, last_column };

/// The parts of the file that hold one side of a tile, each at the place in a buffer that it has in the
/// buffer of the whole tile. Parts with small gaps are read as one.
inline std::vector<file_extent> extents_of(const grid_geometry& g, std::size_t number, unsigned version,
                                           side s) {
  constexpr std::size_t gap = 8 * file_alignment;  // reading it takes less than another transfer
  const tile_shape t = g.tile(number);
  const file_extent all = g.values(number, version);
  const bool row = s == side::first_row || s == side::last_row;
  std::vector<file_extent> found;
  for (std::size_t i = 0; i < (row ? t.columns : t.rows); ++i) {
    const std::size_t r = row ? (s == side::first_row ? 0 : t.rows - 1) : i;
    const std::size_t c = row ? i : (s == side::first_column ? 0 : t.columns - 1);
    const std::size_t page = g.place(t, r, c) * g.element / file_alignment * file_alignment;
    if (found.empty() || page < found.back().at || page > found.back().at + found.back().size + gap)
      found.push_back({all.offset + page, file_alignment, page});
    else
      found.back().size = std::max(found.back().size, page + file_alignment - found.back().at);
  }
  return found;
}

/// Things that tasks take, and wait for without blocking a worker.
/// *Thread safety*: any thread.
template <class Thing>
class waiting_pool {
 public:
  /// *Requires*: nobody takes anything yet.
  void add(Thing& t) { free_.push_back(&t); }
  /// Takes one of them. *Requires*: called in a task without children. *Throws*: cancelled, std::bad_alloc;
  /// then nothing is taken.
  Thing& take() {
    Thing* taken = nullptr;
    fork({.name = "wait for a buffer", .event = true}, [this, &taken] {
      completion done = this_task::hold();
      const std::lock_guard hold(mutex_);
      if (free_.empty()) {
        waiting_.push_back({&taken, std::move(done)});
      } else {
        taken = free_.back();
        free_.pop_back();
      }
    });
    try {
      sync();
    } catch (...) {
      if (taken != nullptr) give_back(*taken);
      throw;
    }
    return *taken;
  }
  /// Gives it to the one who has waited longest.
  void give_back(Thing& t) {
    std::unique_lock hold(mutex_);
    if (waiting_.empty()) {
      free_.push_back(&t);
      return;
    }
    waiter next = std::move(waiting_.front());
    waiting_.pop_front();
    *next.to = &t;
    hold.unlock();
    next.done.complete();
  }

 private:
  struct waiter {
    Thing** to;
    completion done;
  };
  std::mutex mutex_;
  std::vector<Thing*> free_;
  std::deque<waiter> waiting_;
};

/// Some sweeps. A turn of a tile's task reads the tile and the sides of its neighbours that it needs, sweeps
/// over it, and writes it; the two versions of the values alternate from sweep to sweep. Neighbours are at
/// most one turn apart, so no version is overwritten that somebody needs.
/// *Source*: Clauss, Gustedt: ordered read-write locks for Livermore kernel 23.
template <class T, std::size_t Fields, class Kernel>
class overlay_pass {
 public:
  /// Bytes of memory with so many buffers, for as many turns at once.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes, std::size_t buffers) {
    constexpr std::size_t task = 2048, stack = std::size_t{32} << 10;  // upper bounds
    return boundary_bytes +
           buffers * (5 * g.values_bytes() + g.fields_bytes() +
                      aligned(work_elements(g.tile_rows, g.tile_columns) * sizeof(T))) +
           aligned(g.tiles() * task) + stack * wave(g);
  }
  /// The most tiles that may be computed at once.
  static std::size_t wave(const grid_geometry& g) noexcept {
    return std::min(g.tiles_down(), g.tiles_across());
  }

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  overlay_pass(memory_budget& budget, grid_file<T, Fields>& grid, std::size_t buffers, const Kernel& kernel)
      : grid_(grid), geometry_(grid.geometry()), kernel_(kernel), buffers_(buffers) {
    for (buffer& b : buffers_) {
      for (aligned_buffer* of : {&b.values, &b.north, &b.west, &b.east, &b.south})
        *of = aligned_buffer(budget, geometry_.values_bytes());
      b.fields = aligned_buffer(budget, geometry_.fields_bytes());
      b.work = aligned_buffer(budget, work_elements(geometry_.tile_rows, geometry_.tile_columns) * sizeof(T));
      pool_.add(b);
    }
  }

  /// Does so many sweeps. `changes`: as sweep_tile; only for one sweep. `times`: where the
  /// turns are written, or null. *Throws*: as overlay::run.
  void run(runtime& rt, std::size_t sweeps, std::stop_token stop, const largest_changes* changes,
           std::ostream* times) {
    std::deque<orwl::location<token>> tiles(geometry_.tiles());
    orwl::overlay overlay;
    const std::size_t across = geometry_.tiles_across();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const bool north = i >= across, south = i + across < tiles.size();
      const bool west = i % across != 0, east = (i + 1) % across != 0;
      const auto turn = [this, i, changes](orwl::turn& t, token&, const auto&...) {
        turn_(i, t.iteration(), changes);
      };
      // A task names no location twice, so each set of neighbours is a list of its own.
      const auto add = [&](auto... requests) {
        overlay.task({.name = "sweep a tile"}, turn, orwl::write(tiles[i]), requests...);
      };
      const auto with_east = [&](auto... requests) {
        east ? add(requests..., orwl::read(tiles[i + 1])) : add(requests...);
      };
      const auto with_south = [&](auto... requests) {
        south ? with_east(requests..., orwl::read(tiles[i + across])) : with_east(requests...);
      };
      const auto with_west = [&](auto... requests) {
        west ? with_south(requests..., orwl::read(tiles[i - 1])) : with_south(requests...);
      };
      north ? with_west(orwl::read(tiles[i - across])) : with_west();
    }
    overlay.schedule();
    overlay.record(times != nullptr);
    overlay.run(rt, sweeps, {.stop = std::move(stop)});
    if (times != nullptr) overlay.write_times(*times);
  }

 private:
  struct token {};
  struct buffer {
    aligned_buffer values, fields, north, west, east, south, work;
  };
  /// Gives a buffer back at the end of a turn.
  struct borrowed_buffer {
    waiting_pool<buffer>& pool;
    buffer& b;
    ~borrowed_buffer() { pool.give_back(b); }
  };

  void turn_(std::size_t number, std::uint64_t sweep, const largest_changes* changes) {
    const borrowed_buffer mine{pool_, pool_.take()};
    buffer& b = mine.b;
    const tile_shape t = geometry_.tile(number);
    const std::size_t across = geometry_.tiles_across();
    const auto before = static_cast<unsigned>((grid_.version() + sweep) % 2), after = 1 - before;
    const bool top = t.row == 0, left = t.column == 0;
    const bool bottom = t.row + t.rows == geometry_.rows, right = t.column + t.columns == geometry_.columns;
    fork({.name = "read a tile", .event = true}, [&] {
      grid_.read_values(number, before, b.values.data());
      grid_.read_fields(number, b.fields.data());
      if (!top) read_side_(number - across, after, side::last_row, b.north);
      if (!left) read_side_(number - 1, after, side::last_column, b.west);
      if (!right) read_side_(number + 1, before, side::first_column, b.east);
      if (!bottom) read_side_(number + across, before, side::first_row, b.south);
    });
    sync();
    // The element of a side; only asked for where there is such a tile.
    const auto of = [this](const aligned_buffer& from, std::size_t tile, std::size_t r, std::size_t c) {
      return elements<T>(from)[geometry_.place(geometry_.tile(tile), r, c)];
    };
    const border around{
        [&](std::size_t c) {
          return top ? grid_.north()[1 + t.column + c]
                     : of(b.north, number - across, geometry_.tile_rows - 1, c);
        },
        [&](std::size_t r) {
          return left ? grid_.west()[t.row + r] : of(b.west, number - 1, r, geometry_.tile_columns - 1);
        },
        [&](std::size_t r) { return right ? grid_.east()[t.row + r] : of(b.east, number + 1, r, 0); },
        [&](std::size_t c) {
          return bottom ? grid_.south()[1 + t.column + c] : of(b.south, number + across, 0, c);
        }};
    sweep_tile(geometry_, t, elements<T>(b.values), elements<T>(b.values), elements<T>(b.fields),
               geometry_.field_pitch(t), around, elements<T>(b.work), kernel_, changes);
    fork({.name = "write a tile", .event = true},
         [&] { grid_.write_values(number, after, b.values.data()); });
    sync();
  }
  void read_side_(std::size_t tile, unsigned version, side s, aligned_buffer& to) {
    for (const file_extent& e : extents_of(geometry_, tile, version, s)) grid_.read_part(e, to.data());
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  std::vector<buffer> buffers_;
  waiting_pool<buffer> pool_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
