// SPDX-License-Identifier: BSL-1.0
// Calling a function for a record: its forks are deferred behind a marker, and noted.
#pragma once

#include <weft/graph/recorded_call.hpp>
#include <weft/sched/detail/drain.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Links a marker, so that what is forked next is deferred. *Returns*: false if there is no memory.
inline bool link_marker(strand& s, const recorded_call& call) noexcept {
  try {
    if (!s.pending()) open_frame(s);
    void* const place = s.closures.allocate(sizeof(record_marker));
    link(*s.top, *::new (place) record_marker(call.recording ? nullptr : call.of, call.next));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// The children of a body that calls a function for a record have run: goes on behind another marker.
WEFT_COLD inline void resume_recorded(strand& s) noexcept {
  if (!s.recorded->broken && !s.pending() && !link_marker(s, *s.recorded)) s.recorded->broken = true;
}

}  // namespace weft::inline WEFT_ABI::sched
