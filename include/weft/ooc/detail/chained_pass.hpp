// SPDX-License-Identifier: BSL-1.0
// The policy chained: several sweeps in one pass over the file, in a window of strips.
#pragma once

#include <weft/flow/runtime.hpp>
#include <weft/ooc/detail/row_sweeps.hpp>
#include <weft/ooc/detail/row_window.hpp>
#include <weft/ooc/detail/skewed_window.hpp>
#include <weft/ooc/sweep_options.hpp>

#include <optional>
#include <string>

namespace weft::inline WEFT_ABI::ooc::detail {

/// How a pass uses memory. A unit is some rows of tiles, which are read, and of which the values are written,
/// together; a group is as many diagonals as a unit has strips.
struct chained_plan {
  std::size_t sweeps = 0;       ///< of one pass
  std::size_t tile_lines = 1;   ///< rows of tiles in a unit
  std::size_t unit_strips = 1;  ///< strips in a unit
  std::size_t units = 3;        ///< in the window
  std::size_t staged = 2;       ///< units that are being read, and units that are being written
  std::size_t bytes = 0;        ///< of everything
};

/// Bytes of one task that has not ended, with what the scheduler needs for it; an upper bound.
inline constexpr std::size_t task_bytes = 512;
/// Tasks into which a group is cut, at most: so many that two groups overlap, so few that memory does not
/// matter.
inline constexpr std::size_t group_tasks = 16;
/// Tasks of a group, with those that read, load, store and write a unit.
inline constexpr std::size_t step_tasks = group_tasks + 6;
/// Rows of a unit of several rows of tiles, at most.
inline constexpr std::size_t most_unit_rows = 128;

/// How a kernel sweeps over strips in memory: one that sees four neighbours, in vectors.
template <class T, std::size_t Fields, class Kernel>
struct sweep_method {
  using window = skewed_window<T, Fields, wavefront::native_lanes<T>>;
  template <class Changes>
  using chain = wavefront::chained_sweeps<window, Kernel, Changes>;
  static constexpr std::size_t positions = 64;  // of a strip, in one tile
};
/// One that sees a rectangle, point by point.
template <class T, std::size_t Fields, window_kernel Kernel>
struct sweep_method<T, Fields, Kernel> {
  using window = row_window<T, Fields>;
  template <class Changes>
  using chain = row_sweeps<window, Kernel, Changes>;
  static constexpr std::size_t positions = 256;
};

/// The plan for so many sweeps in a pass.
template <class Window>
chained_plan plan_chained(const grid_geometry& g, std::size_t boundary_bytes, unsigned workers,
                          std::size_t sweeps, std::size_t tile_lines, std::size_t staged = 2) {
  chained_plan p;
  p.sweeps = sweeps;
  p.tile_lines = tile_lines;
  p.staged = staged;
  const std::size_t strip = Window::strip_rows(g);
  p.unit_strips = (std::min(tile_lines * g.tile_rows, g.rows) + strip - 1) / strip;
  p.units = 3 + (sweeps - 1) / p.unit_strips + std::clamp(workers, 1u, 3u);
  const std::size_t across = g.tiles_across(), all = (g.tiles_down() + tile_lines - 1) / tile_lines;
  p.units = std::min(p.units, all);  // more would never be used
  const std::size_t steps = all + sweeps / p.unit_strips + 1;
  const std::size_t values = aligned(tile_lines * across * g.values_bytes());
  p.bytes = Window::bytes(g, p.unit_strips, p.units) + boundary_bytes +
            p.staged * (values + aligned(tile_lines * across * g.fields_bytes())) + p.staged * values +
            aligned(steps * step_tasks * task_bytes);
  return p;
}

/// The best plan within a budget: as many sweeps as possible in a pass, equally many in each, then larger
/// units, or for the policy pool more units that are being transferred.
/// *Throws*: weft::error with the least budget that suffices, or if tiles do not consist of whole strips.
template <class Window>
chained_plan plan_chained_within(const grid_geometry& g, std::size_t boundary_bytes, unsigned workers,
                                 policy p, std::size_t sweeps, std::size_t most, std::size_t budget) {
  const auto plan = [&](std::size_t k, std::size_t lines) {
    return plan_chained<Window>(g, boundary_bytes, workers, k, lines);
  };
  const std::size_t strip = Window::strip_rows(g);
  if (g.tiles_down() > 1 && g.tile_rows % strip != 0)
    throw error("weft: the policy chained needs tiles whose number of rows is a multiple of " +
                std::to_string(strip) + "; this grid has tiles of " + std::to_string(g.tile_rows) + " rows");
  check_budget(p, plan(1, 1).bytes, budget);
  std::size_t k = most == 0 ? sweeps : std::min(most, sweeps);
  // Each group takes the memory of its tasks: more sweeps than this never fit, and for these plan() does not
  // overflow.
  budget = std::min(budget, SIZE_MAX / 4);
  const std::size_t groups = budget / (step_tasks * task_bytes) + 1, of_group = plan(1, 1).unit_strips;
  if (groups < k / of_group) k = groups * of_group;
  if (plan(k, 1).bytes > budget) {
    std::size_t fits = 1;
    while (k - fits > 1) {
      const std::size_t middle = fits + (k - fits) / 2;
      (plan(middle, 1).bytes <= budget ? fits : k) = middle;
    }
    k = fits;
  }
  const std::size_t passes = (sweeps - 1) / k + 1;
  k = (sweeps - 1) / passes + 1;
  if (p == policy::pool) {
    std::size_t staged = 2;
    const std::size_t enough = std::min(enough_buffers, g.tiles_down());
    while (staged < enough &&
           plan_chained<Window>(g, boundary_bytes, workers, k, 1, staged + 1).bytes <= budget)
      ++staged;
    return plan_chained<Window>(g, boundary_bytes, workers, k, 1, staged);
  }
  std::size_t lines = 1;
  while (lines < g.tiles_down() && 2 * lines * g.tile_rows <= most_unit_rows &&
         plan(k, 2 * lines).bytes <= budget)
    lines *= 2;
  return plan(k, lines);
}

/// One pass. Tasks are ordered by what they read and write: a slot of the window, a buffer, and, for the
/// tiles of chained_sweeps, the column of tiles and the group.
template <class T, std::size_t Fields, class Kernel>
class chained_pass {
  using method = sweep_method<T, Fields, Kernel>;

 public:
  using window = typename method::window;

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  chained_pass(memory_budget& budget, grid_file<T, Fields>& grid, const chained_plan& plan,
               const Kernel& kernel)
      : grid_(grid),
        geometry_(grid.geometry()),
        plan_(plan),
        kernel_(kernel),
        window_(budget, grid, plan.unit_strips, plan.units),
        slots_(plan.units),
        groups_(plan.units + 4),
        incoming_(plan.staged),
        outgoing_(plan.staged) {
    const std::size_t tiles = plan.tile_lines * geometry_.tiles_across();
    for (staging& s : incoming_) {
      s.values = aligned_buffer(budget, tiles * geometry_.values_bytes());
      s.fields = aligned_buffer(budget, tiles * geometry_.fields_bytes());
    }
    for (staging& s : outgoing_) s.values = aligned_buffer(budget, tiles * geometry_.values_bytes());
  }

  /// Does so many sweeps. *Requires*: called in a task. *Throws*: what its tasks throw; cancelled before the
  /// next tile if a stop is requested. `p`: basic: one step after the other; three_buffers: one transfer
  /// after the other. `changes`: where the largest change of each sweep is noted, or null.
  void run(std::size_t sweeps, policy p, const largest_changes* changes, const std::stop_token& stop) {
    policy_ = p;
    stop_ = stop;
    series_.emplace();
    tasks_ = 0;
    if (changes != nullptr)
      run_(sweeps, changes);
    else
      run_<wavefront::ignored_changes>(sweeps, nullptr);
  }

 private:
  struct token {};
  struct staging {
    aligned_buffer values, fields;
    token own;
  };
  /// The place of the next task that transfers something.
  transfer_place next_() noexcept { return {&*series_, tasks_++}; }
  /// What orders a transfer besides the data.
  token& transfer_(staging& s) noexcept {
    return policy_ == policy::basic || policy_ == policy::three_buffers ? disk_ : s.own;
  }
  /// What the tasks of a group update one after the other.
  token& group_(std::size_t group) noexcept {
    return policy_ == policy::basic ? disk_ : groups_[group % groups_.size()];
  }

  template <class Changes>
  void run_(std::size_t sweeps, const Changes* changes) {
    const wavefront::sweep_options tiles{.diagonals = plan_.unit_strips, .positions = method::positions};
    const typename method::template chain<Changes> chain(window_, sweeps, kernel_, tiles, changes);
    std::size_t widest = 1;  // tiles of a group
    for (std::size_t g = 0; g < chain.rows(); ++g) {
      const auto [first, end] = chain.columns_of(g);
      widest = std::max(widest, end - first);
    }
    width_ = (widest + group_tasks - 1) / group_tasks;
    columns_.assign(chain.columns() / width_ + 1, {});
    const std::size_t units = (geometry_.tiles_down() + plan_.tile_lines - 1) / plan_.tile_lines;
    try {
      fork_all_(chain, sweeps, units);
    } catch (...) {
      sync();  // tasks use the chain; what they throw comes first
      throw;
    }
    sync();
  }
  template <class Chain>
  void fork_all_(const Chain& chain, std::size_t sweeps, std::size_t units) {
    const std::size_t groups = chain.rows();
    std::size_t stored = 0;
    for (std::size_t step = 0; step <= groups; ++step) {
      if (step < units) load_(step);
      if (step == 0) continue;
      const std::size_t group = step - 1;
      compute_(chain, group, units);
      // The last group that needs unit u is the one of the diagonal that lies `sweeps` behind its strips.
      for (; stored < units && std::min(stored + 1 + (sweeps - 1) / plan_.unit_strips, groups - 1) <= group;
           ++stored)
        store_(stored, group);
    }
  }

  std::size_t first_tile_(std::size_t unit) const noexcept {
    return unit * plan_.tile_lines * geometry_.tiles_across();
  }
  std::size_t end_tile_(std::size_t unit) const noexcept {
    return std::min(first_tile_(unit + 1), geometry_.tiles());
  }
  /// Calls `f(tile, i)` for the tiles of a unit, numbered from 0.
  template <class F>
  void for_tiles_(std::size_t unit, F f) const {
    for (std::size_t t = first_tile_(unit), i = 0; t < end_tile_(unit); ++t, ++i) f(t, i);
  }

  void load_(std::size_t unit) {
    staging& from = incoming_[unit % plan_.staged];
    fork(
        {.name = "read strips", .priority = 2, .event = true},
        [this, unit, place = next_()](staging& s, token&) {
          for_tiles_(unit, [&](std::size_t t, std::size_t i) {
            grid_.read_values(t, grid_.version(), s.values.data() + i * geometry_.values_bytes(), place);
            grid_.read_fields(t, s.fields.data() + i * geometry_.fields_bytes(), place);
          });
        },
        update(borrow(from)), update(borrow(transfer_(from))));
    fork(
        {.name = "load strips", .priority = 1},
        [this, unit](const staging& s, token&) {
          for_tiles_(unit, [&](std::size_t t, std::size_t i) {
            window_.load(t, s.values.data() + i * geometry_.values_bytes(),
                         s.fields.data() + i * geometry_.fields_bytes());
          });
        },
        read(borrow(from)), update(borrow(slots_[unit % plan_.units])));
  }
  template <class Chain>
  void compute_(const Chain& chain, std::size_t group, std::size_t units) {
    auto [first, end] = chain.columns_of(group);
    if (group != 0) first = std::min(first, end_before_ - 1);  // a column of both groups orders them
    end_before_ = end;
    token& self = group_(group);
    for (std::size_t c = first, next; c < end; c = next) {
      next = std::min((c / width_ + 1) * width_, end);
      const auto work = [this, &chain, group, c, next](token&, token&, const token&, const token&) {
        for (std::size_t column = c; column < next; ++column) {
          if (stop_.stop_requested()) throw cancelled();
          if constexpr (window_kernel<Kernel>)
            chain.tile(group, column, stop_);
          else
            chain.tile(group, column);
        }
      };
      // The first one waits for the strips of this group and those south of them.
      const bool waits = c == first;
      fork({.name = "sweep strips"}, work, update(borrow(self)), update(borrow(columns_[c / width_])),
           read(borrow(waits && group < units ? slots_[group % plan_.units] : nothing_)),
           read(borrow(waits && group + 1 < units ? slots_[(group + 1) % plan_.units] : nothing_)));
    }
  }
  void store_(std::size_t unit, std::size_t after_group) {
    staging& to = outgoing_[unit % plan_.staged];
    fork(
        {.name = "store strips", .priority = 1},
        [this, unit](token&, const token&, staging& s) {
          for_tiles_(unit, [&](std::size_t t, std::size_t i) {
            window_.store(t, s.values.data() + i * geometry_.values_bytes());
          });
        },
        update(borrow(slots_[unit % plan_.units])), read(borrow(group_(after_group))), update(borrow(to)));
    fork(
        {.name = "write strips", .priority = 2, .event = true},
        [this, unit, place = next_()](const staging& s, token&) {
          for_tiles_(unit, [&](std::size_t t, std::size_t i) {
            grid_.write_values(t, 1 - grid_.version(), s.values.data() + i * geometry_.values_bytes(), place);
          });
        },
        read(borrow(to)), update(borrow(transfer_(to))));
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  chained_plan plan_;
  const Kernel& kernel_;
  window window_;
  policy policy_ = policy::chained;
  std::stop_token stop_;
  token nothing_, disk_;
  std::size_t end_before_ = 0;  // of the columns of tiles of the group before
  std::size_t width_ = 1;       // columns of tiles in a task, the same in all groups
  std::vector<token> slots_, groups_, columns_;
  std::vector<staging> incoming_, outgoing_;
  std::optional<transfer_series> series_;
  std::uint64_t tasks_ = 0;  // that transfer something
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
