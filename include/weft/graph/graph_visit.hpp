// SPDX-License-Identifier: BSL-1.0
// How a graph visits closures, in reference order, and makes nodes of them.
#pragma once

#include <weft/graph/graph.hpp>

namespace weft::inline WEFT_ABI::sched {

inline void graph::begin_anew() noexcept {
  forget();
  while (ready_.size() + local_.size() + unended_ == 0 && !visit_next() && stuck_) visit_without_memory();
}

inline void graph::visit_without_memory() noexcept {
  closure& c = *unvisited();
  const closure_state state = c.state.load(base::memory_order_acquire);  // as in visit_next
  last_ = &c;
  cursor_ = &c.next;
  stuck_ = false;
  replay_.stop();
  if (state == closure_state::done) return;
  if (state == closure_state::failed) return note_raised(c, next_index_++);
  graph_node& n = *::new (last_resort_) graph_node(&c, next_index_++, 0, state == closure_state::stolen);
  order_.all_wait_for(n);
  ++unended_;
  away_ += n.running;
  if (n.running) return note_stolen(c, n, state);
  newest_ = &n;  // the only one
  local_.push_back(n);
}

inline bool graph::owner_is_near() const noexcept {
  return entered && waiter == nullptr && (own.taken == 0 || owner_near.lies_ahead());
}

inline void graph::visit_for(std::size_t takers, bool by_owner) noexcept {
  if (!by_owner && owner_is_near()) return;
  if (owner_asks_.load(base::memory_order_relaxed)) owner_asks_.store(false, base::memory_order_relaxed);
  takers_ = takers;
  enough_ = 2 * takers * speed.batch();
  // A graph of tiny tasks is soon left, with all that has been visited.
  if (!by_owner || !speed.longer())
    return visit_ahead(enough_, speed.longer() ? granularity::visited_at_once : granularity::visited_at_first,
                       by_owner);
  if (busy_) owner_asks_.store(true, base::memory_order_relaxed);
  if (!owner_would_visit()) return;
  owner_visits.store(true, base::memory_order_relaxed);
  visit_ahead(enough_, granularity::visited_by_owner, true);
  owner_visits.store(false, base::memory_order_relaxed);
}

inline void graph::visit_ahead(std::size_t wanted, std::size_t budget, bool by_owner) noexcept {
  constexpr std::size_t shortest = 32, longest = 512;
  std::size_t chunk = shortest;
  std::size_t locked = 2 * granularity::large_frame;  // so many with the lock closed: others wait for it
  while (!busy_ && !stuck_ && ready_.size() < wanted && budget != 0) {
    if (!by_owner && owner_asks_.load(base::memory_order_relaxed)) return;
    if (const std::size_t visited = visit_unlocked(std::min(budget, chunk), by_owner); visited != 0) {
      budget -= visited;
      // Where others queue for the lock, it comes more rarely.
      if (by_owner) chunk = waited_ ? std::min(2 * chunk, longest) : shortest;
    } else {
      if (locked-- == 0 || !visit_next()) return;
      --budget;
    }
  }
}

inline std::size_t graph::visit_unlocked(std::size_t most, bool by_owner) noexcept {
  const int* const only = ready_.only_priority();
  if (only == nullptr) return 0;
  const int priority = *only;  // others may be expected when the lock is open
  const auto needs_lock = [&](closure& c) {
    const descriptor& d = *c.what;
    if (!d.plain || d.fence || d.marker || c.local) return true;
    // Acquire: as in visit_next.
    const closure_state state = c.state.load(base::memory_order_acquire);
    if (state != closure_state::created || !replay_.goes_on_with(c, state)) return true;
    const int given = d.options(c).priority;
    return (given != 0 ? given : base_priority_) != priority;
  };
  closure* const next = unvisited();
  if (next == nullptr || needs_lock(*next)) return 0;
  busy_ = true;
  unended_ += most;  // before the first of them can end
  update_hint();
  mutex.unlock();
  graph_node* ready = nullptr;
  graph_node** link = &ready;
  std::size_t count = 0;
  bool memory = true;
  // Relaxed: a hint.
  const auto is_asked = [&] { return !by_owner && owner_asks_.load(base::memory_order_relaxed); };
  for (closure* c; count < most && (c = unvisited()) != nullptr && !needs_lock(*c) && !is_asked(); ++count) {
    try {
      graph_node& n = make_node(*c, priority, false);
      last_ = c;
      cursor_ = &c->next;
      if (!n.let_go()) continue;  // then it is whoever's ends the last that it waits for
      *link = &n;
      link = &n.next;
    } catch (const std::bad_alloc&) {
      memory = false;
      break;
    }
  }
  *link = nullptr;
  constexpr unsigned patience = 8;
  waited_ = mutex.lock_first() > patience;
  busy_ = false;
  stuck_ = !memory;  // see begin_anew
  unended_ -= most - count;
  while (ready != nullptr) make_ready(*std::exchange(ready, ready->next));
  return count;
}

inline graph_node& graph::make_node(closure& c, int priority, bool running) {
  graph_node& n = replay_.on() ? replay_.add(order_, c, next_index_, priority, running)
                               : order_.add(c, next_index_, priority, running);
  ++next_index_;
  n.earlier = std::exchange(newest_, &n);
  return n;
}

inline bool graph::visit_next() noexcept {
  if (stuck_) return false;
  closure* const c = unvisited();
  if (c == nullptr) return false;
  try {
    const closure_state state = c->state.load(base::memory_order_acquire);  // pairs with end_stolen
    if (!replays(*c, state)) return false;
    if (c->what->at_home && order_.versions().any()) return !(pausing_ = true);
    if (state == closure_state::stolen) {
      stolen_nodes_.reserve(stolen_nodes_.size() + 1);
      raised_.reserve(raised_.size() + 1);
      note_stolen(*c, visit(*c, true), state);
    } else if (state == closure_state::failed) {
      raised_.reserve(raised_.size() + 1);
      note_raised(*c, next_index_++);
    } else if (state != closure_state::done) {
      visit(*c, false);
    } else if (record_marker::is(*c) == nullptr) {
      replay_.skip(*c);
    }
  } catch (const std::bad_alloc&) {
    stuck_ = true;  // see begin_anew
    return false;
  }
  last_ = c;
  cursor_ = &c->next;
  return true;
}

inline bool graph::replays(closure& c, closure_state state) noexcept {
  const record_marker* const m = state == closure_state::done ? record_marker::is(c) : nullptr;
  if (m != nullptr ? !replay_.continues_at(*m) : !replay_.goes_on_with(c, state)) {
    if (unended_ != 0 || order_.versions().any()) {
      pausing_ = true;
      return false;
    }
    forget();
    replay_.stop();
  }
  if (m != nullptr) replay_.begin(*m);
  return true;
}

inline void graph::note_stolen(closure& c, graph_node& n, closure_state state) noexcept {
  // Release and acquire: who ends the closure sees this and tells the graph, or has ended it already.
  if (c.state.compare_exchange_strong(state, closure_state::noted, base::memory_order_acq_rel))
    return stolen_nodes_.push_back(&n);
  graph_entry* folds = nullptr;
  if (state == closure_state::failed) note_raised(c, n.index);
  finish(n, folds);  // a stolen closure folds for itself
}

inline void graph::note_raised(closure& c, std::uint32_t index) noexcept {
  if (raised_.size() == raised_.capacity()) return fail(index, {c.take_failure(), &c});
  raised_.push_back(&c);
  fail(index, {c.failure(), &c});
}

inline graph_node& graph::visit(closure& c, bool running) {
  const task_options& o = c.what->options(c);
  const int priority = o.priority != 0 ? o.priority : base_priority_;
  (c.local ? local_ : ready_).expect(priority);
  if (c.what->fence) fences_.expect();
  graph_node& n = make_node(c, priority, running);
  away_ += running;
  all_plain_ = all_plain_ && c.what->plain && !c.what->fence && !c.what->marker;
  if (c.what->fence && !running) fences_.add(n, unended_);
  ++unended_;
  if (n.let_go() && !running) make_ready(n);
  return n;
}

}  // namespace weft::inline WEFT_ABI::sched
