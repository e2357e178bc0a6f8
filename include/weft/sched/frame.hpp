// SPDX-License-Identifier: BSL-1.0
// The closures that one task has forked and that have not ended, in reference order.
#pragma once

#include <weft/sched/cleanup.hpp>
#include <weft/sched/closure.hpp>

#include <optional>

namespace weft::sched {

/// An exception or none; unlike std::exception_ptr, empty at no cost and in constant expressions.
using late_exception = std::optional<std::exception_ptr>;

/// One frame. It is opened by the first deferred fork of a body, closed when its last closure has ended.
///
/// Who may touch it when:
///  1. `parent`, `closures_end` are set before the frame is published (by parent->child) and constant.
///  2. `child`, `first`, `current`, `closed` are written by the owner of the strand; thieves read them while
///  they
///     are alone inside the strand (strand::lock, and for a running strand the entry protocol).
///  3. `link`, `failing`, `objects` and the exception behind `closed` belong to the owner of the strand.
///  4. `scan` belongs to the thief that holds strand::lock.
///  5. The memory of a frame and its closures is reused only after the owner has looked at strand::attention.
struct frame {
  constexpr frame() noexcept {}
  frame(frame* p, std::byte* closures) noexcept : parent(p), closures_end(closures) {}
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  ~frame() {}  // take_error has been called, or there is none

  frame* parent = nullptr;
  base::atomic<frame*> child{nullptr};
  base::atomic<closure*> first{nullptr};
  base::atomic<closure*> current{nullptr};  ///< the closure the owner has claimed; all before it have ended
  base::atomic<closure*>* link = &first;    ///< where the next closure is to be linked
  closure* scan = nullptr;  ///< all before it have ended (used while the owner has claimed nothing yet)
  std::byte* closures_end = nullptr;
  bool failing = false;              ///< the last closure has failed: whatever is forked later is dropped
  base::atomic<bool> closed{false};  ///< a closure ended with an exception: all later ones are dropped
  struct nothing {};
  union {
    nothing not_begun_{};
    object_mark objects;  ///< where the objects of this frame's tasks begin; set when its closures are begun
  };

  /// Keeps the exception of the first closure that failed, and closes the frame.
  WEFT_COLD void close(std::exception_ptr e) noexcept {
    if (closed.load(weft::base::memory_order_relaxed)) return;  // only the owner writes it
    std::construct_at(&error_, std::move(e));
    closed.store(true, weft::base::memory_order_relaxed);  // thieves read it behind the entry protocol
  }
  /// *Requires*: closed, called once.
  WEFT_COLD std::exception_ptr take_error() noexcept {
    std::exception_ptr e = std::move(error_);
    std::destroy_at(&error_);
    return e;
  }

 private:
  union {
    nothing no_error_{};
    std::exception_ptr error_;
  };
};

}  // namespace weft::sched
