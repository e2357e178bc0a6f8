// SPDX-License-Identifier: BSL-1.0
// Something that happens once, for which one flow of control may wait.
#pragma once

#include <weft/base/event_count.hpp>

namespace weft::inline WEFT_ABI::sched {

struct strand;
class engine;

/// A signal. Who waits is a strand, which its worker leaves meanwhile, or a kernel thread, which blocks.
///
/// Who may touch it when:
///  1. `waiter`, `home`, `what`, `object`, `label` and `holder` are set by whoever will wait, before others
///  may set the signal.
///  2. `state` goes from off to awaited by the strand that waits, and to on, once, by whoever sets it.
struct signal {
  static constexpr std::uint32_t off = 0, on = 1, awaited = 2;

  base::atomic<std::uint32_t> state{off};
  strand* waiter = nullptr;      ///< the strand that may wait; null: a kernel thread
  engine* home = nullptr;        ///< whose worker executes it
  const char* what = nullptr;    ///< what it waits for, in words; null: the end of a run
  const void* object = nullptr;  ///< which one, if it is one that users know
  const char* label = nullptr;   ///< and its name, if it has one
  const base::atomic<const strand*>* holder = nullptr;  ///< whose body will set it, if that is known

  /// Acquire pairs with set().
  bool is_on() const noexcept { return state.load(base::memory_order_acquire) == on; }
  /// Makes it a new one. *Requires*: nobody else knows of it.
  void reset() noexcept { state.store(off, base::memory_order_relaxed); }
  /// Blocks the calling kernel thread until it is set.
  void block() noexcept {
    while (!is_on()) base::futex_wait(state, off);
  }
  /// The same, at most until `end`. *Returns*: whether it is set.
  bool block_until(base::clock::time_point end) noexcept {
    while (!is_on()) {
      if (base::clock::now() >= end) return false;
      base::futex_wait_until(state, off, end);
    }
    return true;
  }
  /// Sets it; it may be gone when this returns. *Returns*: the strand to be continued, if one waits.
  strand* set() noexcept {
    strand* const w = waiter;
    // Release publishes what has happened to block(); acquire takes over a waiting strand.
    if (state.exchange(on, base::memory_order_acq_rel) == awaited) return w;
    if (w == nullptr) base::futex_wake(state, 1);
    return nullptr;
  }
};

/// A signal for which a body of a run waits, and no longer if the run is stopped.
struct abandonable : signal {
  void (*give_up)(abandonable&) noexcept = nullptr;  ///< stops the wait; may be called twice
};

}  // namespace weft::inline WEFT_ABI::sched
