// SPDX-License-Identifier: BSL-1.0
// A closure that tells when everything before it in reference order has ended well, or that it has not.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What wants to be told. Called by the strand's owner, once: `passed` when all tasks that the same body has
/// forked before have ended, or `dropped` because one of them has thrown or the run was stopped.
struct fence_listener {
  void (*passed)(fence_listener&);
  void (*dropped)(fence_listener&) noexcept;
};

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
  static constexpr task_options defaults_{.name = "fence", .local = true};
  static constexpr descriptor what_{
      .run = &run_,
      .drop = &drop_,
      .modes = nullptr,
      .objects = 0,
      .options = [](const closure&) noexcept -> const task_options& { return defaults_; },
      .fence = true};
  fence_listener* listener_;
};

/// Puts a fence behind all that the running body has forked so far. *Requires*: something is pending.
/// *Throws*: std::bad_alloc; then nothing has happened.
inline void put_fence(strand& s, fence_listener& l) {
  if (failing(s)) return l.dropped(l);
  void* const place = s.closures.allocate(sizeof(fence), alignof(fence));
  link(*s.top, *::new (place) fence(l));
  ++s.live;
}

}  // namespace weft::inline WEFT_ABI::sched
