// SPDX-License-Identifier: BSL-1.0
// What a running body does when it waits for its children.
#pragma once

#include <weft/sched/fork.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The exception of a stopped run, or std::bad_alloc if there is no memory for it.
std::exception_ptr cancellation() noexcept;

/// The name of the running task: of the innermost that has options, if it runs inside fork. Null outside
/// tasks.
const char* current_task_name() noexcept;

/// Runs the children of the running body to their end. What they throw is left in `thrown`. Nothing is
/// pending then, but for the exception that cancels a weak body.
void drain_children(strand& s);

/// Waits for all children of the running body.
/// *Throws*: the first exception in reference order; cancelled.
void sync(strand& s);

/// The handle of an object of the running body ends: tells the recorder of the run. *Requires*: the run is
/// recorded.
void end_recorded_object(strand& s, const void* object) noexcept;
/// The same, and releases its memory, which ends at `end`. *Requires*: moreover, the body has no children.
void release_recorded(strand& s, std::byte* object, std::byte* end) noexcept;

/// Sets a signal; whoever waits for it goes on.
/// *Thread safety*: any thread.
void raise_signal(signal& g) noexcept;

}  // namespace weft::inline WEFT_ABI::sched
