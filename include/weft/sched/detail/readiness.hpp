// SPDX-License-Identifier: BSL-1.0
// The thief's search: which closure of a strand is ready, judged by the rights of the unfinished ones before
// it.
#pragma once

#include <weft/graph/address_table.hpp>
#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The strongest pending right on each object met in one frame. *Thread safety*: one thread at a time.
class pending_rights {
 public:
  void clear() noexcept { strongest_.clear(); }
  /// Whether a task with this right on `object` must wait for one that was added.
  bool conflicts(const void* object, access_mode mode) const noexcept {
    const access_mode* const earlier = strongest_.find(object);
    return earlier != nullptr && conflict(*earlier, mode);
  }
  /// Adds a pending right. *Throws*: std::bad_alloc.
  void add(const void* object, access_mode mode) {
    static_assert(access_mode{} == access_mode::read);  // what a new object begins with
    access_mode& strongest = strongest_.at(object);
    if (strongest == access_mode::read) strongest = mode;
  }

 private:
  address_table<access_mode> strongest_;
};

/// What a thief found: the first ready closure, the frame below the one it is in if that is crowded, and the
/// first frame that should be promoted; or that it came to a frame of tiny tasks, which it left alone with
/// all above it.
struct findings {
  closure* ready = nullptr;
  frame* large = nullptr;
  frame* in = nullptr;  ///< the frame that it is in
  const frame* ready_above = nullptr;
  bool next = false;  ///< the owner, who executes the frame, is about to come to the ready one
  bool cooldown = false;
  bool only_graphs = false;  ///< graphs of frames are all there was
};

/// Finds a ready closure, from a frame on, oldest first (innermost first, where the strand says so), and a
/// frame that should be promoted: a large one, or one with rights beyond whole objects. `wanted`: leaves out
/// what this thief has no use for. *Requires*: the
/// caller is alone inside the strand. *Throws*: std::bad_alloc. *Cost*: linear in the closures met, at most
/// granularity::large_frame for each frame. *Source*: the steal of KAAPI (Gautier, Besseron, Pigeon,
/// PASCO'07, section 3.3), from a moving start.
inline findings find_ready(strand& s, pending_rights& pending, frame* from, thief_filter wanted = nullptr) {
  using namespace base;
  findings found;
  const bool running = s.status.load(memory_order_relaxed) == strand_status::running;  // ordered by the lock
  const bool earliest = s.earliest_first.load(memory_order_relaxed);                   // a hint
  bool graphs = false, others = false;
  // Acquire, here and below, pairs with the owner's release stores that publish frames and closures.
  for (frame* f = from; f != nullptr && (found.ready == nullptr || earliest);
       f = f->child.load(memory_order_acquire)) {
    // Acquire pairs with leave_graph.
    if (const std::uint8_t flags = f->flags.load(memory_order_acquire); flags != 0) {
      graphs = graphs || (flags & frame::promoted) != 0;
      continue;
    }
    others = true;
    if (running && s.cooldown.covers(*f->parent)) {
      found.cooldown = true;
      break;
    }
    pending.clear();
    const auto wait_for = [&pending](const closure& c) {
      for (unsigned i = 0; i < c.what->objects; ++i) pending.add(c.objects()[i], c.what->modes[i]);
    };
    closure* c = f->current.load(memory_order_acquire);
    bool whole = true;         // only rights on whole objects so far
    bool renames = false;      // a task waits that need not in a graph
    bool next = c != nullptr;  // the owner executes the frame, and nothing has been passed by
    if (c != nullptr) {
      // The owner is at c: running it, or waiting for the thief that does, or just past it. Its children have
      // their rights from it, so it stands in the way of later closures of this frame only.
      const closure_state state = c->state.load(memory_order_acquire);
      if (state == closure_state::failed) continue;
      if (state != closure_state::done) {
        whole = c->what->plain;
        next = false;
        wait_for(*c);
      }
      c = c->next.load(memory_order_acquire);
    } else {
      c = f->scan != nullptr ? f->scan : f->first.load(memory_order_acquire);
      while (c != nullptr && c->state.load(memory_order_acquire) == closure_state::done) {
        if (f->scan != c && f->passed != UINT8_MAX) ++f->passed;
        f->scan = c;
        c = c->next.load(memory_order_acquire);
      }
    }
    unsigned seen = 0;
    const closure* in_this_frame = nullptr;
    for (; c != nullptr && seen < granularity::large_frame; c = c->next.load(memory_order_acquire), ++seen) {
      const closure_state state =
          c->state.load(memory_order_acquire);  // pairs with the exchange in end_stolen
      if (state == closure_state::done) continue;
      if (state == closure_state::failed) break;  // everything later is dropped
      whole = whole && c->what->plain;
      if (in_this_frame != nullptr || !whole) continue;
      bool ready = state == closure_state::created && !c->local && (wanted == nullptr || wanted(*c));
      for (unsigned i = 0; ready && i < c->what->objects; ++i)
        ready = !pending.conflicts(c->objects()[i], c->what->modes[i]);
      if (ready)
        in_this_frame = found.ready = c, found.next = next;
      else
        wait_for(*c);
      next = false;
      renames = renames || (!ready && c->what->kinds != nullptr);
    }
    if (in_this_frame != nullptr) {
      found.in = f;
      found.ready_above = f->passed + seen >= granularity::crowded_frame ? f->parent : nullptr;
    }
    if (found.large == nullptr &&
        (seen == granularity::large_frame || (!whole && seen != 0) || (renames && in_this_frame == nullptr)))
      found.large = f;
  }
  found.only_graphs = graphs && !others;
  return found;
}

/// Finds the ready closures of one frame without a graph, oldest first, and writes them to `ready`.
/// *Returns*: how many. *Requires*, *Throws*: as find_ready. *Cost*: linear in the closures met.
inline unsigned find_all_ready(const frame& f, pending_rights& pending, thief_filter wanted,
                               closure* (&ready)[granularity::large_frame]) {
  using namespace base;
  unsigned found = 0;
  pending.clear();
  // Acquire, all, and what the owner is at: as in find_ready.
  closure* const at = f.current.load(memory_order_acquire);
  closure* c = at;
  if (c == nullptr) c = f.scan != nullptr ? f.scan : f.first.load(memory_order_acquire);
  for (unsigned seen = 0; c != nullptr && seen < granularity::large_frame; ++seen) {
    const closure_state state = c->state.load(memory_order_acquire);
    if (state == closure_state::failed || (state != closure_state::done && !c->what->plain)) break;
    if (state != closure_state::done) {
      bool is_ready =
          c != at && state == closure_state::created && !c->local && (wanted == nullptr || wanted(*c));
      for (unsigned i = 0; is_ready && i < c->what->objects; ++i)
        is_ready = !pending.conflicts(c->objects()[i], c->what->modes[i]);
      for (unsigned i = 0; i < c->what->objects; ++i) pending.add(c->objects()[i], c->what->modes[i]);
      if (is_ready) ready[found++] = c;
    }
    c = c->next.load(memory_order_acquire);
  }
  return found;
}

/// find_ready in all frames.
inline findings find_ready(strand& s, pending_rights& pending) {
  return find_ready(s, pending, s.root.child.load(base::memory_order_acquire));  // see above
}

}  // namespace weft::inline WEFT_ABI::sched
