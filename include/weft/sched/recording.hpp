// SPDX-License-Identifier: BSL-1.0
// Calling a function for a record: its forks are deferred behind a marker, and noted.
#pragma once

#include <weft/sched/owner.hpp>

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

/// The extent of such a call.
class recorded_scope {
 public:
  /// Contract violation outside tasks.
  recorded_scope(strand& s, record& r) noexcept : strand_(s) {
    if (is_outside(s))
      fail_outside("a recorded graph was called outside a task; pass the first task to runtime::run");
    // Within another one its tasks belong to that. Without thieves, there are no graphs.
    if (s.recorded != nullptr || (!WEFT_CHECKED && s.wanted_surplus == 0) || failing(s)) return;
    call_.of = &r;
    if (!r.ready()) {
      if (!r.begin()) return;
      call_.recording = true;
    } else if (!WEFT_CHECKED && s.may_inline()) {
      return;
    }
    s.recorded = &call_;
    call_.broken = !link_marker(s, call_);
  }
  recorded_scope(const recorded_scope&) = delete;
  recorded_scope& operator=(const recorded_scope&) = delete;
  ~recorded_scope() {
    if (strand_.recorded != &call_) return;
    strand_.recorded = nullptr;
    if (call_.recording) call_.of->abandon();
  }
  /// To be called when the function has returned.
  void end() noexcept {
    if (strand_.recorded != &call_) return;
    try {
      call_.end();
    } catch (const std::bad_alloc&) {  // then the next call records
    }
  }

 private:
  strand& strand_;
  recorded_call call_;
};

}  // namespace weft::inline WEFT_ABI::sched
