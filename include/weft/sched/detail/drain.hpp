// SPDX-License-Identifier: BSL-1.0
// What the owner of a strand does: executing frames in reference order, failing, waiting.
#pragma once

#include <weft/base/probe.hpp>
#include <weft/sched/sync.hpp>
#include <weft/task/run_recorder.hpp>
#include <weft/task/run_state.hpp>
#include <weft/task/task_keeper.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Waits in a drain until the stolen closure has ended (worker.hpp). *Returns*: false if the strand now waits
/// as data, which makes it somebody else's at once; only asked for where `as_data`.
bool await(strand& s, closure& stolen, bool as_data);

/// What became of a promoted frame that its owner executed.
enum class graph_outcome : std::uint8_t {
  opened,  ///< a task has opened a frame above it
  ended,   ///< all its closures have ended
  left,    ///< its owner goes on without the graph, behind frame::current
  aside,   ///< the strand waits as data: it is somebody else's
};

/// Executes a promoted frame as far as possible (graph_owner.hpp).
graph_outcome run_promoted(strand& s, frame& f, bool as_data);

/// Whether the owner still has to end, in the ordinary way, the closure at which it was when the frame was
/// promoted.
bool comes_before_graph(strand& s, const frame& f, const closure& c) noexcept;

/// Lets tasks run inside fork as deep as the strand's stack allows, or not at all (worker_loop.hpp).
void set_inline_limit(strand& s) noexcept;

void resume_recorded(strand& s) noexcept;  // recording.hpp
void count_dropped(strand& s) noexcept;    // wait.hpp
void count_capped(strand& s) noexcept;     // wait.hpp

/// Tells sleeping workers that the strand may have something to steal (wait.hpp); `certain`: that it has.
void offer(strand& s, bool certain) noexcept;

/// Whether somebody sleeps who could be told (wait.hpp).
bool sleepers_near(const strand& s) noexcept;

WEFT_COLD WEFT_FUNCTION bool attend(strand& s) noexcept {
  using namespace base;
  std::uint8_t bits =
      s.attention.load(memory_order_acquire);  // pairs with the thief's release when it leaves
  for (backoff wait; (bits & thief_inside) != 0; bits = s.attention.load(memory_order_acquire)) {
    // The entry number is read after the bit was seen and answered before the bit is read again, so an answer
    // can only be taken for a visit during which the owner stands in this loop. Release pairs with the
    // thief's acquire.
    s.answer.store(s.entry.load(memory_order_acquire), memory_order_release);
    wait.wait();
  }
  // All bits are cleared before `stopped` is read, so that a stop in between leaves one of the two.
  const std::uint8_t noted = bits & (hungry | took | stop_asked | watched | inlining_changed | left_alone);
  if (noted != 0) s.attention.fetch_and(static_cast<std::uint8_t>(~noted), memory_order_acq_rel);
  // Acquire pairs with stop(). A bit left over from an earlier run of this strand is not set again.
  const bool stopped = s.run.load(memory_order_relaxed)->stopped.load(memory_order_acquire);
  if (stopped)
    s.attention.fetch_or(stop_asked, memory_order_relaxed);  // only this thread needs to see it again
  if ((bits & took) != 0) {
    const std::uint32_t n = s.taken.exchange(0, memory_order_relaxed);  // a hint; thieves only add
    s.surplus = s.surplus > n ? s.surplus - n : 0;
  }
  // Who is hungry when a cooldown begins hears of it.
  if ((bits & (hungry | left_alone)) != 0) s.surplus = (bits & left_alone) != 0 ? left_alone_untried : 0;
  if ((bits & inlining_changed) != 0) set_inline_limit(s);
  if ((bits & hungry) != 0) s.exposed.hear_of_hunger(s.wanted_surplus);
  if ((bits & (hungry | left_alone)) != 0) s.restore_window();
  if (stopped || s.inline_limit == no_inlining) s.limit = no_inlining;
  // Somebody has to come back when the cooldown is over: whoever sleeps without a time would not be woken.
  if ((bits & left_alone) != 0 && sleepers_near(s)) offer(s, true);
  return stopped;
}

WEFT_COLD WEFT_FUNCTION bool drops_forks(const strand& s) noexcept {
  // Relaxed: constant while the body runs. Acquire pairs with engine::stop.
  return failing(s) || s.run.load(base::memory_order_relaxed)->stopped.load(base::memory_order_acquire);
}

WEFT_COLD WEFT_FUNCTION std::exception_ptr cancellation() noexcept {
  try {
    throw cancelled();
  } catch (...) {
    return std::current_exception();
  }
}

/// Leaves the innermost frame. *Requires*: all its closures have ended.
inline void pop_frame(strand& s) noexcept {
  frame* f = s.top;
  end_lives(s, f);
  base::owner_store(f->parent->child, static_cast<frame*>(nullptr));
  s.top = f->parent;
  look(s);  // a thief inside may still read the frame
  s.deferred += s.live - f->live_below;
  s.live = f->live_below;
  s.closures.release_to(arena_mark{reinterpret_cast<std::byte*>(f), f->closures_end});
}

/// Whether the closure after `c` can be stolen. *Requires*: all before `c` have ended.
WEFT_COLD inline bool next_is_ready(const closure& c) noexcept {
  const closure* n = c.next.load(base::memory_order_relaxed);  // the owner's own store
  if (n == nullptr || n->local || n->state.load(base::memory_order_relaxed) != closure_state::created)
    return false;
  if (!n->what->plain || !c.what->plain) return false;
  for (unsigned i = 0; i < n->what->objects; ++i)
    for (unsigned j = 0; j < c.what->objects; ++j)
      if (n->object(i) == c.object(j) && conflict(c.what->modes[j], n->what->modes[i])) return false;
  return true;
}

/// Tells sleepers of what comes behind `c`.
WEFT_COLD inline void offer_next(strand& s, const closure& c) noexcept {
  const bool certain = next_is_ready(c);
  if (!certain && s.quiet_tasks != 0)
    --s.quiet_tasks;
  else
    offer(s, certain);
}

/// Prepares the strand for the body of `c`, which is claimed.
WEFT_ALWAYS_INLINE void enter(strand& s, frame& f, closure& c) noexcept {
  s.floor = &f;
  s.left.begin_body();
  if (s.wanted_surplus == 0) {
    s.limit = s.inline_limit;
  } else {
    if (c.counted && s.surplus != 0) --s.surplus;
    s.exposed.begin_task(context::stack_pointer(), c.depth);
    s.restore_window();
    s.restore_limit();
    if (!s.is_left_alone() && sleepers_near(s)) [[unlikely]]
      offer_next(s, c);
  }
}

/// Ends a claimed closure that is not simply to be run. *Returns*: false if the strand now waits as data.
WEFT_NOINLINE inline bool settle(strand& s, frame& f, closure& c, bool as_data) {
  for (;;) {
    switch (c.state.load(base::memory_order_acquire)) {  // pairs with the exchange of the thief that ended it
      case closure_state::created:
        if (c.counted && s.surplus != 0) --s.surplus;
        c.what->drop(c);
        count_dropped(s);
        return true;
      case closure_state::failed:
        f.close(c.take_failure(), &c);
        return true;
      case closure_state::done:
        return true;
      case closure_state::stolen:
      case closure_state::awaited:
      case closure_state::noted:
        if (!await(s, c, as_data)) return false;
    }
  }
}

/// Notes where the objects of the frame's tasks begin. *Returns*: its first closure.
WEFT_ALWAYS_INLINE closure* begin_frame(strand& s, frame& f) noexcept {
  std::construct_at(&f.objects, s.mark());
  return f.first.load(base::memory_order_relaxed);  // the owner's own store
}

/// Whether a closure stands before this link of their frame. *Requires*: the owner's frame.
inline bool stands_before(const closure* c, const base::atomic<closure*>* link) noexcept {
  // Relaxed: the owner reads links that it wrote itself.
  for (; c != nullptr; c = c->next.load(base::memory_order_relaxed))
    if (&c->next == link) return true;
  return false;
}

/// Lets the exception that ended a frame end the closure that the frame belongs to, or leave the drain.
WEFT_COLD inline void hand_up_error(strand& s, frame& f, frame* floor) noexcept {
  placed_exception e = f.take_failure();
  if (f.parent != floor)
    return f.parent->close(std::move(e.error), f.parent->current.load(base::memory_order_relaxed));
  for (weak_body* w = s.weak; w != nullptr && w->floor == floor && stands_before(e.place, w->first_link);
       w = w->outer)
    w->older_failed = true;
  s.thrown = std::move(e.error);
}

/// The frame that weak bodies share with the body around them has ended. The exception of a closure that is
/// older than the innermost goes back to where that body's own sync finds it; the weak body is cancelled.
WEFT_COLD inline void begin_weak_anew(strand& s) noexcept {
  if (s.weak->older_failed) raise(s, *std::exchange(s.thrown, cancellation()));
  for (weak_body* w = s.weak; w != nullptr && w->floor == s.floor; w = w->outer)
    w->first_link = std::exchange(w->older_failed, false) ? s.top->link : nullptr;
}

/// Runs the body of a claimed closure; what it throws stays at this place of the reference order.
WEFT_ALWAYS_INLINE void run_body(strand& s, closure& c) noexcept {
#if WEFT_CHECKED
  const delegated_rights::body outer = s.delegated.enter_body();
  s.lives.begin_body();
#endif
  const auto run = [&s, &c] {
    try {
      c.what->run(c);
    } catch (...) {
      [[maybe_unused]] const races::unseen library;
      raise(s, std::current_exception());
    }
  };
#if WEFT_RACES
  races::run_apart(s.racing, races::accesses_of(c), races::begin_task(), run);
#else
  run();
#endif
#if WEFT_CHECKED
  s.lives.end_body(s.pending() ? s.top : nullptr);
  s.delegated.leave_body(outer);
#endif
}

/// Executes the strand's frames, first closure to last, until only `floor` and what lies below it is left.
/// With `as_data` no user code is on the stack, and the strand may be put aside without it.
/// *Returns*: false if it was put aside; then it must not be touched any more. Otherwise s.thrown holds the
/// exception that leaves the last frame, if any.
inline bool drain(strand& s, frame* floor, bool as_data) {
  frame* f = s.top;
  closure* c =
      f->current.load(base::memory_order_relaxed);  // the owner's own store, or handed over with the strand
  if (c == nullptr) c = begin_frame(s, *f);
  for (;;) {
    while (c == nullptr) {  // the frame has ended
      if (f->is(frame::promoted) && !f->is(frame::over)) [[unlikely]] {
        const graph_outcome o = run_promoted(s, *f, as_data);
        if (o == graph_outcome::aside) return false;
        if (o == graph_outcome::opened) c = begin_frame(s, *(f = s.top));
        if (o != graph_outcome::left) continue;
        // Relaxed, twice: the owner reads what it wrote itself.
        c = f->current.load(base::memory_order_relaxed)->next.load(base::memory_order_relaxed);
        continue;
      }
      if (f->is(frame::closed)) [[unlikely]]
        hand_up_error(s, *f, floor);
      f = f->parent;
      pop_frame(s);
      if (f == floor) return true;
      release_objects(s, f->objects);
      // Relaxed, twice: the owner reads what it wrote itself.
      c = f->current.load(base::memory_order_relaxed)->next.load(base::memory_order_relaxed);
    }
    base::owner_store(f->current, c);
    if (look(s)) [[unlikely]]
      f->close(cancellation(), c);
    // Acquire pairs with the exchange of the thief that ended it; the flags are the owner's own, or behind
    // the look.
    if (c->state.load(base::memory_order_acquire) != closure_state::created ||
        f->flags.load(base::memory_order_relaxed) != 0) [[unlikely]] {
      if (f->is(frame::promoted) && !comes_before_graph(s, *f, *c)) {
        c = nullptr;
        continue;
      }
      if (c->state.load(base::memory_order_acquire) != closure_state::created || f->is(frame::closed)) {
        if (!settle(s, *f, *c, as_data)) return false;
        c = c->next.load(base::memory_order_relaxed);  // the owner's own store
        continue;
      }
    }
    enter(s, *f, *c);
    run_body(s, *c);
    if (s.top != f) {
      f = s.top;
      c = begin_frame(s, *f);
      continue;
    }
    release_objects(s, f->objects);
    c = c->next.load(base::memory_order_relaxed);  // the owner's own store
  }
}

WEFT_FUNCTION const char* current_task_name() noexcept {
  const strand& s = current();
  if (is_outside(s) || s.floor == nullptr) return nullptr;
  if (s.inline_name != nullptr) return s.inline_name;
  const closure* c = s.floor->current.load(base::memory_order_relaxed);  // the owner's own store
  return c != nullptr ? c->what->options(*c).name : nullptr;
}

WEFT_FUNCTION void drain_children(strand& s) {
  frame* const floor = s.floor;
  const char* const name = s.inline_name;
  const deferred_release::body left = s.left.put_aside();
  recorded_call* const recorded = std::exchange(s.recorded, nullptr);
  s.inline_name = nullptr;
  const std::uintptr_t origin = s.exposed.origin();
  ++s.drains;
  drain(s, floor, false);
  s.exposed.restore_origin(origin);
  s.restore_window();
  s.recorded = recorded;
  s.inline_name = name;
  s.floor = floor;
  s.left.resume(left);
  if (s.unit != nullptr) [[unlikely]]
    reconsider_unit(s);
  if (s.weak != nullptr && s.weak->floor == floor) [[unlikely]]
    begin_weak_anew(s);
}

WEFT_COLD WEFT_FUNCTION void end_recorded_object(strand& s, const void* object) noexcept {
  s.recorder->end_object(object);
}
WEFT_NOINLINE WEFT_FUNCTION void release_recorded(strand& s, std::byte* object, std::byte* end) noexcept {
  s.recorder->end_object(object);
  if (s.objects.top() == end)
    s.objects.release_to(object);
  else
    s.left.note(object, end);
  if (s.left.any()) [[unlikely]]
    s.release_deferred();
}

WEFT_NOINLINE WEFT_FUNCTION void sync(strand& s) {
  if (is_outside(s))
    fail_outside("sync() was called outside a task; only a running task has children to wait for");
  check_nothing_held(s, &current_task_name, "calls sync()");
  bool stopped = false;
  if (s.pending()) {
    drain_children(s);
    stopped = s.run.load(base::memory_order_relaxed)
                  ->stopped.load(base::memory_order_acquire);  // pairs with stop()
  } else if (const std::uint8_t bits = base::owner_load(s.attention); bits != 0) [[unlikely]] {
    if (!WEFT_CHECKED && bits == observed && s.recorder != nullptr && !s.left.any() &&
        s.recorded == nullptr && !s.thrown)
      return s.recorder->sync();  // a stop would have set its bit
    stopped = attend(s);
  }
#if WEFT_CHECKED
  s.delegated.forget_children();
#endif
  if (!s.pending()) {
    s.restore_limit();
    if (s.left.any()) [[unlikely]]
      s.release_deferred();
  }
  if (s.recorder != nullptr) [[unlikely]]
    s.recorder->sync();
  if (s.recorded != nullptr) [[unlikely]]
    resume_recorded(s);
  if (s.thrown) std::rethrow_exception(*std::exchange(s.thrown, std::nullopt));
  if (stopped) throw cancelled();
}

}  // namespace weft::inline WEFT_ABI::sched
