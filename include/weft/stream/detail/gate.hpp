// SPDX-License-Identifier: BSL-1.0
// What the frontier of a stream waits for: a task, or tasks, that have to end.
#pragma once

#include <weft/base/atomic.hpp>

#include <cstdint>

namespace weft::inline WEFT_ABI::stream {

/// How far something is that the stream waits for. open: it goes on. watched: it goes on, and who ends it has
/// the frontier then. ended, cut: it is over, and has failed. dirty: open, and who is about to watch it has
/// to look again.
enum class gate_state : std::uint8_t { open, watched, ended, cut, dirty };

/// Something that has to end before the frontier passes. Whoever has the frontier makes it watched and leaves
/// the frontier there; who ends it takes the frontier over.
class gate {
 public:
  /// Acquire pairs with end().
  gate_state state() const noexcept { return state_.load(base::memory_order_acquire); }
  /// Leaves the frontier here. *Returns*: false if it has ended, or is dirty.
  bool watch() noexcept {
    gate_state seen = state();
    if (seen != gate_state::open) return false;
    // Release hands the frontier to whoever ends it; acquire sees what was published before the end.
    return state_.compare_exchange_strong(seen, gate_state::watched, base::memory_order_acq_rel,
                                          base::memory_order_acquire);
  }
  /// Something was added to what the gate is of. *Returns*: whether the frontier is here; then the caller,
  /// who would end it, takes it. If not, whoever comes with it sees what was added before it leaves it here.
  bool set_dirty() noexcept {
    // Release pairs with clear_dirty. If this store comes later, watch fails.
    return state_.exchange(gate_state::dirty, base::memory_order_acq_rel) == gate_state::watched;
  }
  /// For who has the frontier, before it looks again. *Returns*: whether it was dirty.
  bool clear_dirty() noexcept {
    gate_state seen = state();
    if (seen != gate_state::dirty) return false;
    return state_.compare_exchange_strong(seen, gate_state::open, base::memory_order_acq_rel,
                                          base::memory_order_acquire);
  }
  /// Takes the frontier from here. *Requires*: it was watched, and called by who would end it.
  void leave() noexcept {
    state_.store(gate_state::open, base::memory_order_relaxed);  // the next watch() publishes
  }
  /// *Returns*: whether the caller has the frontier now.
  bool end(bool well) noexcept {
    return state_.exchange(well ? gate_state::ended : gate_state::cut, base::memory_order_acq_rel) ==
           gate_state::watched;
  }

 private:
  base::atomic<gate_state> state_{gate_state::open};
};

}  // namespace weft::inline WEFT_ABI::stream
