// SPDX-License-Identifier: BSL-1.0
// Tiles of a rectangle that are done in wavefront order: each after its neighbours above and to the left.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/ready_queue.hpp>
#include <weft/flow/runtime.hpp>

#include <concepts>
#include <cstddef>
#include <memory>

namespace weft::inline WEFT_ABI::wavefront {

namespace detail {

/// Who may touch it when: 1. `missing` is counted down by the tiles above and to the left. 2. `next` belongs
/// to the queue.
struct tile {
  base::atomic<unsigned char> missing{0};
  tile* next = nullptr;
};

}  // namespace detail

/// Calls `body(row, column)` for each tile of a rectangle, after the tiles above and to the left of it; other
/// tiles run in parallel. A worker prefers the tile to the right, so that with one worker the order is that
/// of two nested loops.
/// *Requires*: the body may be called by several workers at once.
/// *Throws*: what a body throws (of several the first, by row and column), cancelled, and as runtime::run.
/// *Suspends*: as runtime::run.
/// *Cost*: some twenty nanoseconds and 16 bytes per tile.
template <class Body>
  requires std::invocable<Body&, std::size_t, std::size_t>
void for_each_tile(runtime& rt, std::size_t rows, std::size_t columns, Body&& body,
                   const run_options& options = {}) {
  if (rows == 0 || columns == 0) return;
  const auto tiles = std::make_unique<detail::tile[]>(rows * columns);
  sched::ready_queue<detail::tile> ready;
  const auto one = [&](sched::strand& s, detail::tile& t) noexcept -> detail::tile* {
    const auto i = static_cast<std::size_t>(&t - tiles.get());
    const std::size_t row = i / columns, column = i % columns;
    detail::tile* const right = column + 1 < columns ? &tiles[i + 1] : nullptr;
    detail::tile* const below = row + 1 < rows ? &tiles[i + columns] : nullptr;
    const std::exception_ptr failure = sched::call_as_task(s, "tile", [&] {
#if WEFT_RACES
      context::races::acquire(&t);
#endif
      body(row, column);
#if WEFT_RACES
      if (right != nullptr) context::races::release(right);
      if (below != nullptr) context::races::release(below);
      ready.let_see();
#endif
    });
    if (failure) [[unlikely]] {
      ready.fail(s, failure, {row, column});
      return nullptr;
    }
    // Release publishes this tile to the other; acquire lets the second one pass on what the first has
    // published.
    const auto count_down = [](detail::tile* n) {
      return n != nullptr && n->missing.fetch_sub(1, base::memory_order_acq_rel) == 1;
    };
    const bool go_down = count_down(below);
    if (!count_down(right)) return go_down ? below : nullptr;
    if (go_down) ready.offer(*below);
    return right;
  };
  for (std::size_t i = 0; i < rows * columns; ++i)
    tiles[i].missing.store(static_cast<unsigned char>((i >= columns) + (i % columns != 0)),
                           base::memory_order_relaxed);  // run publishes it
  rt.run(options, [&] {
    static constexpr task_options helpers{.name = "wavefront"};
    ready.begin_with(tiles[0]);
    ready.take_all(helpers, "the tiles of a wavefront", one);
  });
}

}  // namespace weft::inline WEFT_ABI::wavefront
