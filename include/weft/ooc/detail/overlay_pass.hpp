// SPDX-License-Identifier: BSL-1.0
// The policy overlay: one recurrent task with ordered locks for each tile; sweeps follow each other tile by
// tile.
#pragma once

#include <weft/ooc/detail/tile_kernel.hpp>
#include <weft/ooc/grid_file.hpp>
#include <weft/ooc/sweep_options.hpp>
#include <weft/orwl/definitions.hpp>
#include <weft/orwl/overlay.hpp>

#include <deque>
#include <mutex>
#include <optional>
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

/// Gives a thing back at the end of a scope.
template <class Thing>
struct borrowed_thing {
  waiting_pool<Thing>& pool;
  Thing& thing;
  ~borrowed_thing() { pool.give_back(thing); }
};

/// How a pass uses memory.
struct overlay_plan {
  std::size_t sweeps = 1;               ///< of one pass
  std::size_t buffers = 1;              ///< as many turns compute or transfer at once
  std::size_t tiles = 1;                ///< of a turn
  std::vector<std::size_t> sides = {};  ///< what a turn reads of its neighbours: bytes of each transfer
};

/// Bytes of a recurrent task, and of its stack while it has its turn; upper bounds.
inline constexpr std::size_t overlay_task_bytes = 2048, overlay_stack_bytes = std::size_t{32} << 10;

/// The best plan within a budget, of at most so many sweeps: the memory of turns that wait for a buffer
/// bounds the sweeps, then there are as many buffers as turns can use. *Throws*: weft::error with the least
/// budget that suffices.
template <class Pass>
overlay_plan plan_overlay(const grid_geometry& g, std::size_t boundary_bytes, std::size_t sweeps,
                          std::size_t budget) {
  overlay_plan p;
  const std::size_t least = Pass::bytes(g, boundary_bytes, p);
  check_budget(policy::overlay, least, budget);
  p.sweeps = sweeps;
  while (p.sweeps > 1 && Pass::bytes(g, boundary_bytes, p) - least > (budget - least) / 2) p.sweeps /= 2;
  const std::size_t most = std::min(Pass::wave(g, p.sweeps), enough_buffers);
  while (p.buffers < most && Pass::bytes(g, boundary_bytes, {p.sweeps, p.buffers + 1}) <= budget) ++p.buffers;
  return p;
}

/// Lets the tasks of an overlay take so many turns, after `before` sweeps. `times`: where the turns are
/// written, or null.
/// *Throws*: as overlay::run.
inline void run_overlay(orwl::overlay& overlay, runtime& rt, std::size_t before, std::size_t sweeps,
                        std::stop_token stop, std::ostream* times) {
  overlay.schedule();
  overlay.record(times != nullptr);
  overlay.run(rt, sweeps, {.stop = std::move(stop)});
  if (times != nullptr) overlay.write_times(*times, before);
}

/// Some sweeps. A turn of a tile's task reads the tile and the sides of its neighbours that it needs, sweeps
/// over it, and writes it. The first sweep reads the valid version of the values and writes the other one;
/// the next ones update that in place: when a tile has its turn, its northern and western neighbours have had
/// theirs, and the others have not, so the file holds of each what the turn needs. The valid version stays.
/// *Source*: Clauss, Gustedt: ordered read-write locks for Livermore kernel 23.
template <class T, std::size_t Fields, class Kernel>
class overlay_pass {
 public:
  /// Bytes of memory of a plan.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes, const overlay_plan& p) {
    return boundary_bytes +
           p.buffers * (5 * g.values_bytes() + g.fields_bytes() +
                        aligned(work_elements(g.tile_rows, g.tile_columns) * sizeof(T))) +
           aligned(g.tiles() * overlay_task_bytes) + overlay_stack_bytes * wave(g, p.sweeps);
  }
  /// The most tiles that may have their turn at once when so many sweeps follow each other. In one sweep they
  /// lie on a diagonal; and neighbours never have theirs together, whatever their sweeps.
  static std::size_t wave(const grid_geometry& g, std::size_t sweeps) noexcept {
    const std::size_t diagonal = std::min(g.tiles_down(), g.tiles_across()), half = (g.tiles() + 1) / 2;
    return sweeps <= half / diagonal ? sweeps * diagonal : half;
  }
  /// The best plan within a budget: see plan_overlay.
  static overlay_plan plan(const grid_geometry& g, std::size_t boundary_bytes, std::size_t sweeps,
                           std::size_t budget) {
    overlay_plan p = plan_overlay<overlay_pass>(g, boundary_bytes, sweeps, budget);
    for (const side s : {side::first_row, side::last_row, side::first_column, side::last_column})
      for (const file_extent& e : extents_of(g, 0, 0, s)) p.sides.push_back(e.size);
    return p;
  }

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  overlay_pass(memory_budget& budget, grid_file<T, Fields>& grid, const overlay_plan& plan,
               const Kernel& kernel)
      : grid_(grid), geometry_(grid.geometry()), kernel_(kernel), buffers_(plan.buffers) {
    for (buffer& b : buffers_) {
      for (aligned_buffer* of : {&b.values, &b.north, &b.west, &b.east, &b.south})
        *of = aligned_buffer(budget, geometry_.values_bytes());
      b.fields = aligned_buffer(budget, geometry_.fields_bytes());
      b.work = aligned_buffer(budget, work_elements(geometry_.tile_rows, geometry_.tile_columns) * sizeof(T));
      pool_.add(b);
    }
  }

  /// Does so many sweeps, after `before` others. `changes`: as sweep_tile; only for one sweep. `times`: where
  /// the turns are written, or null. *Throws*: as overlay::run.
  void run(runtime& rt, std::size_t before, std::size_t sweeps, std::stop_token stop,
           const largest_changes* changes, std::ostream* times) {
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
    series_.emplace();
    run_overlay(overlay, rt, before, sweeps, std::move(stop), times);
  }

 private:
  struct token {};
  struct buffer {
    aligned_buffer values, fields, north, west, east, south, work;
  };

  void turn_(std::size_t number, std::uint64_t sweep, const largest_changes* changes) {
    const borrowed_thing<buffer> mine{pool_, pool_.take()};
    buffer& b = mine.thing;
    const tile_shape t = geometry_.tile(number);
    const std::size_t across = geometry_.tiles_across();
    const unsigned after = 1 - grid_.version(), before = sweep == 0 ? grid_.version() : after;
    const bool top = t.row == 0, left = t.column == 0;
    const bool bottom = t.row + t.rows == geometry_.rows, right = t.column + t.columns == geometry_.columns;
    const transfer_place place{&*series_, sweep * geometry_.tiles() + number};
    const auto read_side = [&](std::size_t tile, unsigned version, side s, aligned_buffer& to) {
      for (const file_extent& e : extents_of(geometry_, tile, version, s))
        grid_.read_part(e, to.data(), place);
    };
    fork({.name = "read a tile", .event = true}, [&] {
      grid_.read_values(number, before, b.values.data(), place);
      grid_.read_fields(number, b.fields.data(), place);
      if (!top) read_side(number - across, after, side::last_row, b.north);
      if (!left) read_side(number - 1, after, side::last_column, b.west);
      if (!right) read_side(number + 1, before, side::first_column, b.east);
      if (!bottom) read_side(number + across, before, side::first_row, b.south);
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
         [&] { grid_.write_values(number, after, b.values.data(), place); });
    sync();
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  std::vector<buffer> buffers_;
  waiting_pool<buffer> pool_;
  std::optional<transfer_series> series_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
