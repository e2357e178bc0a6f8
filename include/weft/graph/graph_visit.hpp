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
  last_resort_ = {.task = &c, .index = next_index_++, .running = state == closure_state::stolen};
  order_.all_wait_for(last_resort_);
  ++unended_;
  away_ += last_resort_.running;
  last_resort_.running ? note_stolen(c, last_resort_, state) : local_.push_back(last_resort_);
}

inline bool graph::visit_next() noexcept {
  if (stuck_) return false;
  closure* const c = unvisited();
  if (c == nullptr) return false;
  try {
    const closure_state state = c->state.load(base::memory_order_acquire);  // pairs with end_stolen
    if (!replays(*c, state)) return false;
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
      replay_.skip();
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
    if (unended_ != 0 || order_.versions().any()) return false;
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
  const graph_node made{.task = &c, .index = next_index_, .priority = priority, .running = running};
  graph_node& n = replay_.on() ? replay_.add(order_, made) : order_.add(made);
  ++next_index_;
  away_ += running;
  all_plain_ = all_plain_ && c.what->plain && !c.what->fence && !c.what->marker;
  if (c.what->fence && !running) fences_.add(n, unended_);
  ++unended_;
  if (!running && n.waits == 0) make_ready(n);
  return n;
}

}  // namespace weft::inline WEFT_ABI::sched
