// SPDX-License-Identifier: BSL-1.0
// The slow parts of a fork: deferring, making room, keeping an exception at its place.
#pragma once

#include <weft/sched/detail/recording.hpp>
#include <weft/task/task_keeper.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::sched {

/// Whether a closure about to be linked would be ready, judged by its own frame; long frames are not
/// searched.
inline bool seems_ready(const frame& f, const closure& c) noexcept {
  constexpr unsigned enough = 8;
  unsigned seen = 0;
  if (c.what->part) return true;
  if (!c.what->plain) return f.first.load(base::memory_order_relaxed) == nullptr;
  // Relaxed: the owner reads links that it wrote itself.
  for (const closure* e = f.first.load(base::memory_order_relaxed); e != nullptr && seen < enough;
       e = e->next.load(base::memory_order_relaxed), ++seen) {
    if (!e->what->plain) return false;
    for (unsigned i = 0; i < c.what->objects; ++i)
      for (unsigned j = 0; j < e->what->objects; ++j)
        if (c.objects()[i] == e->object(j) && conflict(e->what->modes[j], c.what->modes[i])) return false;
  }
  return true;
}

WEFT_NOINLINE WEFT_FUNCTION void defer(strand& s, closure& c) noexcept {
  frame& f = *s.top;
  if (s.recorded != nullptr) [[unlikely]]
    if (!s.recorded->note(c)) return;
  // A body counts more than is wanted, or the claim of its first child would bring deferral back; far beyond
  // that the search for readiness is wasted.
  c.depth = s.exposed.depth_at(context::stack_pointer());
  if (s.surplus < 4 * s.wanted_surplus && !c.local && seems_ready(f, c)) {
    c.counted = true;
    ++s.surplus;
  }
  link(f, c);
  ++s.live;
  if (!s.is_left_alone() && sleepers_near(s)) [[unlikely]] {
    s.quiet_tasks = s.quiet_length = 0;
    offer(s, c.counted);
  }
}

/// Memory for a frame and a closure, until the strand ends (wait.hpp). *Returns*: maybe null.
std::byte* borrow_last_memory(strand& s) noexcept;

WEFT_COLD WEFT_FUNCTION void raise(strand& s, std::exception_ptr e) noexcept {
  static constexpr descriptor nothing{};
  base::probe::exception(current_task_name(), &s);
  if (failing(s)) return;  // an earlier exception is already there
  std::byte* lent = nullptr;
  const auto allocate = [&s, &lent](std::size_t size) {
    void* place = s.closures.allocate_last_resort(size);
    if (place == nullptr) {
      if (lent == nullptr) lent = borrow_last_memory(s);
      if (lent != nullptr) place = std::exchange(lent, lent + size);
    }
    if (place == nullptr) base::fail("no memory left to keep an exception in");
    return place;
  };
  if (!s.pending()) open_frame(s, allocate(sizeof(frame)));
  frame* const f = s.top;
  void* const place = allocate(sizeof(closure));
  auto* c = ::new (place) closure(nothing);
  c->set_failure(std::move(e));
  c->state.store(closure_state::failed, base::memory_order_relaxed);  // published by link
  link(*f, *c);
  f->failing = true;
}

WEFT_NOINLINE WEFT_FUNCTION void interrupt(strand& s, interruption& i) noexcept {
  i.objects = s.mark();
  i.left = s.left.put_aside(s.cleanups);
  i.name = s.inline_name;
  s.restore_limit();
}

WEFT_NOINLINE WEFT_FUNCTION void go_on(strand& s, const interruption& i) noexcept {
  s.inline_name = i.name;
  if (s.pending()) {
    s.left.inherit(i.left);
  } else {
    release_objects(s, i.objects);
    s.left.resume(i.left);
    s.restore_limit();
  }
}

WEFT_COLD WEFT_FUNCTION void make_room(strand& s) {
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

/// Whether the closures of a frame may run earlier than their parent waits for them: all are tasks of the
/// usual kind, which wait for nothing outside their frame.
inline bool may_run_early(const frame& f) noexcept {
  // Relaxed: the owner reads links that it wrote itself.
  for (const closure* c = f.first.load(base::memory_order_relaxed); c != nullptr;
       c = c->next.load(base::memory_order_relaxed))
    if (c->local || c->may_wait_for_earlier || c->what->part || c->what->marker || c->what->fence ||
        c->what->run == nullptr || c->what->options(*c).event)
      return false;
  return true;
}

/// Runs what is pending in the running body's frame, so that later tasks run inside fork again: thieves leave
/// the strand alone. What the tasks throw stays at this place of the reference order.
WEFT_COLD inline void run_left_alone(strand& s) {
  s.surplus = left_alone_surplus;  // once
  if (s.inline_limit == no_inlining || context::stack_pointer() <= s.inline_limit) return;
  if (s.recorded != nullptr || s.weak != nullptr || s.no_suspends != 0 || !may_run_early(*s.top)) return;
  drain_children(s);
  if (!s.pending()) s.restore_limit();
  if (s.thrown) raise(s, *std::exchange(s.thrown, std::nullopt));
}

WEFT_COLD WEFT_FUNCTION fork_action classify_rare_fork(strand& s) noexcept {
  if (is_outside(s)) fail_outside("fork() was called outside a task; pass the first task to runtime::run");
  if (attend(s) || failing(s)) {
    if (s.recorded != nullptr) s.recorded->broken = true;
    count_dropped(s);
    return fork_action::drop;
  }
  if (s.surplus > left_alone_surplus && s.pending() && s.recorder == nullptr) {
    run_left_alone(s);
    if (failing(s)) return classify_rare_fork(s);
  }
  const bool is_observed = (s.attention.load(base::memory_order_relaxed) & observed) != 0;  // its own store
  if (is_observed && (s.row != nullptr || s.recorder != nullptr || is_kept(s))) {
    if (s.recorder != nullptr) return fork_action::record;
    if (s.live >= s.cap) make_room(s);
    if (failing(s)) return classify_rare_fork(s);
    if (s.pending() || context::stack_pointer() <= s.inline_limit || s.exposes_task())
      return fork_action::defer_traced;
    s.restore_limit();
    return fork_action::run_traced;
  }
  // The keeper has seen enough. A step that is recorded keeps the bit (cluster/detail/step_record.hpp).
  if (is_observed && s.recorded == nullptr) enter_unit(s, s.unit);
  return s.pending() ? fork_action::defer : fork_action::run_inline;
}

}  // namespace weft::inline WEFT_ABI::sched
