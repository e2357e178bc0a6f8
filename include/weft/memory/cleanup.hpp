// SPDX-License-Identifier: BSL-1.0
// The objects of a strand: their marks, and the records of those whose destructors matter.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/memory/arena.hpp>

#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

/// Whether an object has a value. absent: none yet. lost: the task that was to produce it failed or was
/// dropped.
enum class presence : std::uint8_t { absent, present, lost };

/// The handle of an object: held by the program, ended while children could still use the object, or ended.
enum class handle : std::uint8_t { held, waiting, ended };

/// An object of a task that needs a destructor call when the task and all below it have ended.
struct cleanup {
  cleanup* below;                           ///< the one registered before
  void (*destroy)(cleanup& self) noexcept;  ///< calls the destructor
  base::atomic<presence> state;             ///< a result becomes present or lost when its task ends
  handle how = handle::held;                ///< belongs to the owner of the strand

  /// Destroys the object, if there is one. *Requires*: the tasks that could use it have ended.
  void run() noexcept {
    // Relaxed, twice: whoever produces a value has ended, and was waited for.
    if (state.load(base::memory_order_relaxed) != presence::present) return;
    state.store(presence::absent, base::memory_order_relaxed);
    destroy(*this);
  }
};

/// Where a strand's objects end: what lies beyond belongs to the task that runs.
struct object_mark {
  arena_mark memory;
  cleanup* cleanups = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
