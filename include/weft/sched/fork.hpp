// SPDX-License-Identifier: BSL-1.0
// What a running body does when it forks: run the task inside fork, append a closure to its frame, or drop
// it.
#pragma once

#include <weft/base/error.hpp>
#include <weft/task/current.hpp>
#include <weft/task/recorded_call.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The owner's answer to attention bits: lets a thief finish, takes note of what thieves report.
/// *Returns*: whether the run of this strand is stopped.
bool attend(strand& s) noexcept;

/// The owner's look (strand, rule 4): after claiming a closure, after popping a frame.
WEFT_ALWAYS_INLINE bool look(strand& s) noexcept {
  if (base::owner_load(s.attention) != 0) [[unlikely]]
    return attend(s);
  return false;
}

/// Opens a frame for the running body at `place`, which was allocated on the closure arena.
/// *Requires*: it has none.
WEFT_ALWAYS_INLINE void open_frame(strand& s, void* place) noexcept {
  frame* f = ::new (place) frame(s.top, s.closures.mark().end, s.live);
  s.top->child.store(f, base::memory_order_release);  // publishes the frame to thieves, who read with acquire
  s.top = f;
  s.limit = no_inlining;
}

/// The same.
/// *Throws*: std::bad_alloc.
inline void open_frame(strand& s) { open_frame(s, s.closures.allocate(sizeof(frame))); }

/// Makes `c` the last closure of the running body's frame.
/// *Requires*: the frame is open.
inline void link(frame& f, closure& c) noexcept {
  // A thief that reads the pointer with acquire sees the whole closure. Ordered against the look at sleepers
  // that follows: pairs with event_count::prepare.
  base::owner_store(*f.link, &c);
  f.link = &c.next;
}

/// Whether an exception already stands at the end of the running body's frame, so that forks are dropped.
inline bool failing(const strand& s) noexcept { return s.pending() && s.top->failing; }

/// Whether whatever the running body forks now is dropped: behind an exception, or in a stopped run.
bool drops_forks(const strand& s) noexcept;

/// Links a complete closure and lets thieves know.
/// *Requires*: the frame is open.
void defer(strand& s, closure& c) noexcept;

/// Puts an exception at this place of the reference order: a closure that has already failed.
/// What was forked before still runs and may throw an earlier one; what is forked later is dropped.
void raise(strand& s, std::exception_ptr e) noexcept;

/// What a body keeps while a task with objects and a name of its own runs inside fork.
struct interruption {
  object_mark objects;
  deferred_release::body left;
  const char* name = nullptr;
};

/// Begins such a task.
void interrupt(strand& s, interruption& i) noexcept;

/// Ends it. If it has left children, what else it has left falls to the body around it.
void go_on(strand& s, const interruption& i) noexcept;

/// Makes room for a closure where the cap on live ones is reached: runs those that the body has forked so
/// far. What they throw stays at this place of the reference order.
void make_room(strand& s);

/// What becomes of a task that is being forked.
enum class fork_action : std::uint8_t {
  run_inline,
  defer,
  drop,
  run_traced,    ///< as run_inline, in a run that is traced, or whose tasks are shown to a keeper
  defer_traced,  ///< as defer
  record         ///< run it inside fork, and tell the recorder
};

/// The rare cases of classify_fork.
fork_action classify_rare_fork(strand& s) noexcept;

/// Whether nothing has to be done at a fork but to tell the recorder. `bits`: attention.
WEFT_ALWAYS_INLINE bool only_records(const strand& s, std::uint8_t bits) noexcept {
  return bits == observed && s.recorder != nullptr && !failing(s);
}

/// Decides where the fast path does not. Contract violation outside tasks.
WEFT_ALWAYS_INLINE fork_action classify_fork(strand& s) noexcept {
  // `outside` has an attention bit set for ever.
  if (base::owner_load(s.attention) != 0) [[unlikely]] {
    const fork_action v = classify_rare_fork(s);
    if (v != fork_action::run_inline) return v;
  }
  if (s.live >= s.cap) [[unlikely]]
    make_room(s);
  if (s.pending()) {
    const bool rare = s.top->failing || s.surplus > left_alone_surplus;
    return rare ? classify_rare_fork(s) : fork_action::defer;
  }
  if (context::stack_pointer() <= s.inline_limit || s.exposes_task()) return fork_action::defer;
  s.restore_limit();
  return fork_action::run_inline;
}

/// Whether a fork that is not run at once only has to make a closure of `size` bytes in the current block.
/// *Requires*: nobody wants attention.
WEFT_ALWAYS_INLINE bool defers_simply(const strand& s, std::size_t size) noexcept {
  if (s.live >= s.cap || !s.closures.fits(size + sizeof(frame))) return false;
  // What is forked for a record goes by defer, which notes it; without thieves, only checked builds do so.
  if (s.wanted_surplus != 0 &&
      (!s.is_left_alone() || s.surplus > left_alone_surplus || s.recorded != nullptr))
    return false;
  if (WEFT_CHECKED && s.recorded != nullptr) return false;
  return s.pending() ? !s.top->failing : context::stack_pointer() <= s.inline_limit;
}

/// Whether a task without a claim on any value may start at once: stack is left, nothing was stopped, and
/// nobody takes what is forked instead.
inline bool may_start_weak(strand& s) noexcept {
  return !is_outside(s) && context::stack_pointer() > s.stack_limit && !failing(s) && !look(s) &&
         (s.recorded == nullptr || s.recorded->take == nullptr);
}

/// For counters of the executing worker.
void count_inlined(strand& s) noexcept;
void count_division(strand& s) noexcept;

/// How many workers the runtime of the executing worker has.
unsigned count_workers(const strand& s) noexcept;

}  // namespace weft::inline WEFT_ABI::sched
