// SPDX-License-Identifier: BSL-1.0
// What a task transfers between memory and the files of a stream, in the trace of its runtime.
#pragma once

#include <weft/blocking/external_event.hpp>
#include <weft/observe/tick_clock.hpp>
#include <weft/task/current.hpp>

#include <cstdint>

namespace weft::inline WEFT_ABI::stream {

/// Calls `transfer`, and puts it into the trace, if there is one, unless it throws. `kind`: "read" or
/// "write". A thread that executes no task has no trace. *Requires*: it does not suspend.
template <class F>
void traced_transfer(const char* kind, std::uint64_t bytes, F transfer) {
  const sched::strand& s = sched::current();
  const std::uint64_t began = s.row != nullptr ? observe::ticks() : 0;
  transfer();
  if (began != 0) [[unlikely]]
    sched::trace_transfer(sched::home_of(s), began, kind, bytes);
}

}  // namespace weft::inline WEFT_ABI::stream
