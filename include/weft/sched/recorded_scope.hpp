// SPDX-License-Identifier: BSL-1.0
// The extent of a call whose forks are recorded, or replayed from a record.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Makes the forks of the running body part of a record, as long as it lives.
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
