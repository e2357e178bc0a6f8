// SPDX-License-Identifier: BSL-1.0
// The closure of a fence.
#pragma once

#include <weft/blocking/fence.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The closure: never stolen, started by a graph when all before it have ended, and by the owner of a frame
/// in order anyway.
class fence final : public closure {
 public:
  explicit fence(fence_listener& l) noexcept : closure(what_), listener_(&l) { local = true; }

 private:
  static void run_(closure& c) {
    fence_listener& l = *static_cast<fence&>(c).listener_;
    l.passed(l);
  }
  static void drop_(closure& c) noexcept {
    fence_listener& l = *static_cast<fence&>(c).listener_;
    l.dropped(l);
  }
  static constexpr task_options options_{.name = "fence", .local = true};
  static constexpr descriptor what_{
      .run = &run_,
      .drop = &drop_,
      .options = [](const closure&) noexcept -> const task_options& { return options_; },
      .fence = true};
  fence_listener* listener_;
};

WEFT_FUNCTION void put_fence(strand& s, fence_listener& l) {
  if (failing(s)) return l.dropped(l);
  void* const place = s.closures.allocate(sizeof(fence), alignof(fence));
  link(*s.top, *::new (place) fence(l));
  ++s.live;
}

}  // namespace weft::inline WEFT_ABI::sched
