// SPDX-License-Identifier: BSL-1.0
// What becomes of a fork that is not run at once: deferred, run after all, or dropped.
#pragma once

#include <weft/sched/detail/recording.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::sched {

/// What a body keeps while a task with objects and a name of its own runs inside fork.
struct interruption {
  object_mark objects;
  leftovers::body left;
  const char* name = nullptr;
};

/// Begins such a task.
WEFT_NOINLINE inline void interrupt(strand& s, interruption& i) noexcept {
  i.objects = s.mark();
  i.left = s.left.put_aside(s.cleanups);
  i.name = s.inline_name;
  s.restore_limit();
}

/// Ends it. If it has left children, what else it has left falls to the body around it.
WEFT_NOINLINE inline void go_on(strand& s, const interruption& i) noexcept {
  s.inline_name = i.name;
  if (s.pending()) {
    s.left.inherit(i.left);
  } else {
    release_objects(s, i.objects);
    s.left.resume(i.left);
    s.restore_limit();
  }
}

/// Makes room for a closure where the cap on live ones is reached: runs those that the body has forked so
/// far. What they throw stays at this place of the reference order.
WEFT_COLD inline void make_room(strand& s) {
  if (!s.pending()) return;  // the live ones belong to bodies below: nesting goes on
  // Deep in the stack only for a body that has forked very many, or a chain of bodies that each fork a few
  // would need a stack as long as itself.
  constexpr std::uint32_t very_many = 4096;
  if (context::stack_pointer() <= s.stack_limit && s.live - s.top->live_below < std::max(s.cap, very_many))
    return;
  check_nothing_held(s, &current_task_name, "forks one task too many, and so has to run some first,");
  count_capped(s);
  drain_children(s);
  if (!s.pending()) s.restore_limit();
  if (s.thrown) raise(s, *std::exchange(s.thrown, std::nullopt));
  if (s.recorded != nullptr) resume_recorded(s);
}

/// What becomes of a task that is being forked.
enum class verdict : std::uint8_t { run_now, defer, drop };

/// The rare cases of judge_fork.
WEFT_COLD inline verdict judge_rare_fork(strand& s) noexcept {
  if (is_outside(s)) fail_outside("fork() was called outside a task; pass the first task to runtime::run");
  if (attend(s) || failing(s)) {
    if (s.recorded != nullptr) s.recorded->broken = true;
    count_dropped(s);
    return verdict::drop;
  }
  return s.pending() ? verdict::defer : verdict::run_now;
}

/// Decides where the fast path does not. Contract violation outside tasks.
WEFT_ALWAYS_INLINE verdict judge_fork(strand& s) noexcept {
  // `outside` has an attention bit set for ever.
  if (base::owner_load(s.attention) != 0) [[unlikely]] {
    const verdict v = judge_rare_fork(s);
    if (v != verdict::run_now) return v;
  }
  if (s.live >= s.cap) [[unlikely]]
    make_room(s);
  if (s.pending()) return s.top->failing ? judge_rare_fork(s) : verdict::defer;
  if (s.surplus < s.wanted_surplus || context::stack_pointer() <= s.inline_limit) return verdict::defer;
  s.restore_limit();
  return verdict::run_now;
}

/// Whether a fork that is not run at once only has to make a closure of `size` bytes in the current block.
WEFT_ALWAYS_INLINE bool defers_simply(const strand& s, std::size_t size) noexcept {
  if (base::owner_load(s.attention) != 0 || s.wanted_surplus != 0 || s.live >= s.cap ||
      !s.closures.fits(size + sizeof(frame)))
    return false;
  if (WEFT_CHECKED && s.recorded != nullptr) return false;
  return s.pending() ? !s.top->failing : context::stack_pointer() <= s.inline_limit;
}

/// Whether a task without a claim on any value may start at once: stack is left, and nothing was stopped.
inline bool may_start_weak(strand& s) noexcept {
  return !is_outside(s) && context::stack_pointer() > s.stack_limit && !failing(s) && !look(s);
}

}  // namespace weft::inline WEFT_ABI::sched
