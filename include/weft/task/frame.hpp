// SPDX-License-Identifier: BSL-1.0
// The closures that one task has forked and that have not ended, in reference order.
#pragma once

#include <weft/memory/cleanup.hpp>
#include <weft/task/closure.hpp>

#include <optional>

namespace weft::inline WEFT_ABI::sched {

/// An exception or none; unlike std::exception_ptr, empty at no cost and in constant expressions.
using late_exception = std::optional<std::exception_ptr>;

/// An exception, and the closure at whose place it stands; null where that place is before all closures.
struct placed_exception {
  std::exception_ptr error;
  const closure* place = nullptr;
};

/// One frame. It is opened by the first deferred fork of a body, closed when its last closure has ended.
///
/// Who may touch it when:
///  1. `parent`, `closures_end`, `live_below` are set before the frame is published (by parent->child)
///     and constant.
///  2. `child`, `first`, `current`, `flags` are written by the owner of the strand; thieves read them
///     while they are alone inside the strand (strand::mutex, and for a running strand the entry protocol).
///  3. `link`, `failing`, `objects` and the exception behind `closed` belong to the owner of the strand.
///  4. `scan`, `attempts` belong to the thief that holds strand::mutex; it also sets `promoted`, which the
///     owner clears.
///  5. The memory of a frame and its closures is reused only after the owner has looked at strand::attention.
struct frame {
  /// closed: a closure ended with an exception, all later ones are dropped. promoted: it is executed by a
  /// graph, and closed to thieves who come in the ordinary way; cleared when the graph leaves the rest to the
  /// owner. over: the graph has ended, and so has the frame.
  enum flag : std::uint8_t { closed = 1, promoted = 2, over = 4 };

  constexpr frame() noexcept {}
  frame(frame* p, std::byte* closures, std::uint32_t live) noexcept
      : parent(p), closures_end(closures), live_below(live) {}
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  ~frame() {}  // take_failure has been called, or there is none

  frame* parent = nullptr;
  base::atomic<frame*> child{nullptr};
  base::atomic<closure*> first{nullptr};
  base::atomic<closure*> current{nullptr};  ///< the closure the owner has claimed; all before it have ended
  base::atomic<closure*>* link = &first;    ///< where the next closure is to be linked
  closure* scan = nullptr;  ///< all before it have ended (used while the owner has claimed nothing yet)
  std::byte* closures_end = nullptr;
  bool failing = false;  ///< the last closure has failed: whatever is forked later is dropped
  base::atomic<std::uint8_t> flags{0};
  std::uint8_t attempts = 0;  ///< of thieves to find something to promote it for, in vain
  std::uint8_t passed = 0;    ///< how many closures they know to stand before `scan`, and that; at most 255
  std::uint32_t live_below = 0;  ///< closures of the strand that were alive when it was opened
  struct nothing {};
  union {
    nothing not_begun_{};
    object_mark objects;  ///< where the objects of this frame's tasks begin; set when its closures are begun
  };

  /// Keeps the exception of the first closure that failed, and closes the frame.
  WEFT_COLD void close(std::exception_ptr e, const closure* place) noexcept {
    if (is(closed)) return;
    std::construct_at(&failure_, std::move(e), place);
    flags.fetch_or(closed, weft::base::memory_order_relaxed);  // thieves read it behind the entry protocol
  }
  /// Opens it again. *Requires*: it is closed.
  WEFT_COLD placed_exception take_failure() noexcept {
    placed_exception f = std::move(failure_);
    std::destroy_at(&failure_);
    flags.fetch_and(static_cast<std::uint8_t>(~closed), weft::base::memory_order_relaxed);
    return f;
  }
  /// Acquire: behind `promoted` lies the graph.
  bool is(flag f) const noexcept { return (flags.load(weft::base::memory_order_acquire) & f) != 0; }

 private:
  union {
    nothing no_failure_{};
    placed_exception failure_;
  };
};

}  // namespace weft::inline WEFT_ABI::sched
