// SPDX-License-Identifier: BSL-1.0
// The policy overlay for kernels that see a rectangle: one recurrent task for each row of tiles.
#pragma once

#include <weft/ooc/detail/overlay_pass.hpp>
#include <weft/ooc/detail/tile_line.hpp>

namespace weft::inline WEFT_ABI::ooc::detail {

/// As overlay_pass for four neighbours. A point also needs new values north-east of it, and those of its row
/// must come before: neighbours in a row of tiles would wait for each other. So a turn is a whole row.
template <class T, std::size_t Fields, window_kernel Kernel>
class overlay_pass<T, Fields, Kernel> {
  using line = tile_line<T, Fields, Kernel>;
  static constexpr reach sees = Kernel::reach;

 public:
  /// Bytes of memory of a plan.
  static std::size_t bytes(const grid_geometry& g, std::size_t boundary_bytes, const overlay_plan& p) {
    return boundary_bytes +
           p.buffers * (g.tiles_across() * (3 * g.values_bytes() + g.fields_bytes()) + line::bytes(g)) +
           aligned(g.tiles_down() * overlay_task_bytes) + overlay_stack_bytes * wave(g, p.sweeps);
  }
  /// The most rows of tiles that may have their turn at once when so many sweeps follow each other.
  static std::size_t wave(const grid_geometry& g, std::size_t sweeps) noexcept {
    return std::min(sweeps, (g.tiles_down() + 1) / 2);
  }
  /// The best plan within a budget: see plan_overlay.
  static overlay_plan plan(const grid_geometry& g, std::size_t boundary_bytes, std::size_t sweeps,
                           std::size_t budget) {
    overlay_plan p = plan_overlay<overlay_pass>(g, boundary_bytes, sweeps, budget);
    p.tiles = g.tiles_across();
    for (std::size_t j = 0; j < p.tiles; ++j)
      for (const std::size_t rows : {sees.north, sees.south}) {
        if (rows == 0) continue;
        const std::size_t all = g.tile(j).rows;
        p.sides.push_back(rows_of(g, j, 0, 0, std::min(rows, all)).size);
      }
    return p;
  }

  /// *Throws*: std::bad_alloc if the budget does not suffice.
  overlay_pass(memory_budget& budget, grid_file<T, Fields>& grid, const overlay_plan& plan,
               const Kernel& kernel)
      : grid_(grid), geometry_(grid.geometry()), kernel_(kernel) {
    const std::size_t across = geometry_.tiles_across();
    for (std::size_t i = 0; i < plan.buffers; ++i) {
      buffer& b = buffers_.emplace_back(line(budget, grid));
      for (aligned_buffer* of : {&b.values, &b.north, &b.south})
        *of = aligned_buffer(budget, across * geometry_.values_bytes());
      b.fields = aligned_buffer(budget, across * geometry_.fields_bytes());
      pool_.add(b);
    }
  }

  /// Does so many sweeps: as for four neighbours.
  void run(runtime& rt, std::size_t before, std::size_t sweeps, std::stop_token stop,
           const largest_changes* changes, std::ostream* times) {
    stop_ = stop;
    std::deque<orwl::location<token>> lines(geometry_.tiles_down());
    orwl::overlay overlay;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto turn = [this, i, changes](orwl::turn& t, token&, const auto&...) {
        turn_(i, t.iteration(), changes);
      };
      const auto add = [&](auto... requests) {
        overlay.task({.name = "sweep a row of tiles"}, turn, orwl::write(lines[i]), requests...);
      };
      const auto with_south = [&](auto... requests) {
        i + 1 < lines.size() ? add(requests..., orwl::read(lines[i + 1])) : add(requests...);
      };
      i > 0 ? with_south(orwl::read(lines[i - 1])) : with_south();
    }
    series_.emplace();
    run_overlay(overlay, rt, before, sweeps, std::move(stop), times);
  }

 private:
  struct token {};
  struct buffer {
    explicit buffer(line made) : rows(std::move(made)) {}
    line rows;
    aligned_buffer values, fields, north, south;
  };

  void turn_(std::size_t number, std::uint64_t sweep, const largest_changes* changes) {
    const borrowed_thing<buffer> mine{pool_, pool_.take()};
    buffer& b = mine.thing;
    const std::size_t across = geometry_.tiles_across(), first = number * across;
    const unsigned after = 1 - grid_.version(), before = sweep == 0 ? grid_.version() : after;
    const transfer_place place{&*series_, sweep * geometry_.tiles_down() + number};
    const bool top = number == 0, bottom = number + 1 == geometry_.tiles_down();
    const auto values = [this](const aligned_buffer& of, std::size_t j) {
      return of.data() + j * geometry_.values_bytes();
    };
    fork({.name = "read tiles", .event = true}, [&] {
      for (std::size_t j = 0; j < across; ++j) {
        const std::size_t tile = first + j;
        grid_.read_values(tile, before, values(b.values, j), place);
        grid_.read_fields(tile, b.fields.data() + j * geometry_.fields_bytes(), place);
        if (!top && sees.north != 0)
          grid_.read_part(
              rows_of(geometry_, tile - across, after, geometry_.tile_rows - sees.north, sees.north),
              values(b.north, j), place);
        if (!bottom && sees.south != 0)
          grid_.read_part(rows_of(geometry_, tile + across, before, 0,
                                  std::min(sees.south, geometry_.tile(tile + across).rows)),
                          values(b.south, j), place);
      }
    });
    sync();
    b.rows.begin(number);
    const auto take = [&](std::size_t tile, const aligned_buffer& of, std::size_t j) {
      b.rows.take(tile, reinterpret_cast<const T*>(values(of, j)));
    };
    for (std::size_t j = 0; j < across; ++j) {
      take(first + j, b.values, j);
      if (!top) take(first + j - across, b.north, j);
      if (!bottom) take(first + j + across, b.south, j);
    }
    b.rows.sweep(
        [&](std::size_t tile) {
          const std::byte* const at = b.fields.data() + (tile - first) * geometry_.fields_bytes();
          return tile_fields<T>{reinterpret_cast<const T*>(at), geometry_.field_pitch(geometry_.tile(tile))};
        },
        kernel_, stop_, changes);
    for (std::size_t j = 0; j < across; ++j)
      b.rows.give(first + j, reinterpret_cast<T*>(values(b.values, j)));
    fork({.name = "write tiles", .event = true}, [&] {
      for (std::size_t j = 0; j < across; ++j)
        grid_.write_values(first + j, after, values(b.values, j), place);
    });
    sync();
  }

  grid_file<T, Fields>& grid_;
  const grid_geometry& geometry_;
  const Kernel& kernel_;
  std::deque<buffer> buffers_;
  waiting_pool<buffer> pool_;
  std::optional<transfer_series> series_;
  std::stop_token stop_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
