// SPDX-License-Identifier: BSL-1.0
// Beginning and ending a call whose forks are recorded or replayed.
#pragma once

#include <weft/sched/detail/fork.hpp>
#include <weft/sched/recorded_scope.hpp>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION record_owner::record_owner() : record_(new record) {}
WEFT_FUNCTION record_owner::~record_owner() { delete record_; }

WEFT_FUNCTION recorded_scope::recorded_scope(strand& s, record_owner& o) noexcept : strand_(s) {
  if (is_outside(s))
    fail_outside("a recorded graph was called outside a task; pass the first task to runtime::run");
  // Within another one its tasks belong to that. Without thieves, there are no graphs.
  if (s.recorded != nullptr || (!WEFT_CHECKED && s.wanted_surplus == 0) || failing(s) ||
      s.recorder != nullptr)
    return;
  record& r = *o.record_;
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

WEFT_FUNCTION recorded_scope::~recorded_scope() {
  if (strand_.recorded != &call_) return;
  strand_.recorded = nullptr;
  if (call_.recording) call_.of->abandon();
}

WEFT_FUNCTION void recorded_scope::end() noexcept {
  if (strand_.recorded != &call_) return;
  try {
    call_.end();
  } catch (const std::bad_alloc&) {  // then the next call records
  }
}

}  // namespace weft::inline WEFT_ABI::sched
