// SPDX-License-Identifier: BSL-1.0
// What the owner of a strand does when it forks: opening a frame, appending closures and exceptions to it.
#pragma once

#include <weft/base/error.hpp>
#include <weft/graph/recorded_call.hpp>
#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Tells sleeping workers that the strand may have something to steal (wait.hpp); `certain`: that it has.
void offer(strand& s, bool certain) noexcept;

/// Whether somebody sleeps who could be told (worker.hpp).
bool sleepers_near(const strand& s) noexcept;

/// Opens a frame for the running body at `place`, which was allocated on the closure arena. *Requires*: it
/// has none.
WEFT_ALWAYS_INLINE void open_frame(strand& s, void* place) noexcept {
  frame* f = ::new (place) frame(s.top, s.closures.mark().end, s.live);
  s.top->child.store(f, base::memory_order_release);  // publishes the frame to thieves, who read with acquire
  s.top = f;
  s.limit = no_inlining;
}

/// The same. *Throws*: std::bad_alloc.
inline void open_frame(strand& s) { open_frame(s, s.closures.allocate(sizeof(frame))); }

/// Makes `c` the last closure of the running body's frame. *Requires*: the frame is open.
inline void link(frame& f, closure& c) noexcept {
  // A thief that reads the pointer with acquire sees the whole closure. Ordered against the look at sleepers
  // that follows: pairs with event_count::prepare.
  base::owner_store(*f.link, &c);
  f.link = &c.next;
}

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

/// Links a complete closure and lets thieves know. *Requires*: the frame is open.
WEFT_NOINLINE inline void defer(strand& s, closure& c) noexcept {
  frame& f = *s.top;
  if (s.recorded != nullptr) [[unlikely]]
    s.recorded->note(c);
  // A body counts more than is wanted, or the claim of its first child would bring deferral back; far beyond
  // that the search for readiness is wasted.
  if (s.surplus < 4 * s.wanted_surplus && !c.local && seems_ready(f, c)) {
    c.counted = true;
    ++s.surplus;
  }
  link(f, c);
  ++s.live;
  if (sleepers_near(s)) [[unlikely]] {
    s.quiet_tasks = s.quiet_length = 0;
    offer(s, c.counted);
  }
}

/// Whether an exception already stands at the end of the running body's frame, so that forks are dropped.
inline bool failing(const strand& s) noexcept { return s.pending() && s.top->failing; }

/// Puts an exception at this place of the reference order: a closure that has already failed.
/// What was forked before still runs and may throw an earlier one; what is forked later is dropped.
WEFT_COLD inline void raise(strand& s, std::exception_ptr e) noexcept {
  static constexpr task_options defaults{};
  static constexpr descriptor nothing{
      nullptr, nullptr, nullptr, 0, [](const closure&) noexcept -> const task_options& { return defaults; }};
  if (failing(s)) return;  // an earlier exception is already there
  const auto allocate = [&s](std::size_t size) {
    void* const place = s.closures.allocate_last_resort(size);
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

}  // namespace weft::inline WEFT_ABI::sched
