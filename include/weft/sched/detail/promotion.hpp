// SPDX-License-Identifier: BSL-1.0
// Large frames: how a thief promotes one to a graph, and how thieves take tasks from there.
#pragma once

#include <weft/sched/detail/wait.hpp>

namespace weft::inline WEFT_ABI::sched {

/// The graph of a promoted frame of this strand.
inline graph& graph_of(strand& s, const frame& f) noexcept {
  graph* g = s.graphs.load(base::memory_order_acquire);  // pairs with promote
  while (g->home != &f) g = g->outer.load(base::memory_order_acquire);
  return *g;
}

/// Thieves add graphs, of whatever frame of the strand, while its owner removes one.
inline void add_graph(strand& s, graph& g) noexcept {
  const std::lock_guard hold(s.graphs_mutex);
  g.outer.store(s.graphs.load(base::memory_order_relaxed), base::memory_order_release);
  s.graphs.store(&g, base::memory_order_release);  // both pair with the acquire of whoever walks the list
}
inline void remove_graph(strand& s, graph& g) noexcept {
  const std::lock_guard hold(s.graphs_mutex);
  base::atomic<graph*>* link = &s.graphs;
  while (link->load(base::memory_order_relaxed) != &g) link = &link->load(base::memory_order_relaxed)->outer;
  link->store(g.outer.load(base::memory_order_relaxed), base::memory_order_release);
}

/// What the tasks of a frame inherit: the priority of the innermost task around it that has one.
inline int inherited_priority(strand& s, const frame& f) noexcept {
  for (const frame* p = f.parent; p != nullptr; p = p->parent)
    if (const closure* c = p->current.load(base::memory_order_acquire))
      if (const int own = c->what->options(*c).priority; own != 0) return own;
  return s.priority;
}

/// Makes a frame's graph, if there is more than one thing to do in it. *Requires*: alone inside the strand.
inline bool worker::promote(strand& s, frame& f) noexcept {
  constexpr unsigned most = 14;
  // The owner may have moved on since the frame was searched, to an exception that stands at this place.
  closure* const from = f.current.load(base::memory_order_acquire);
  if (from != nullptr && from->state.load(base::memory_order_acquire) == closure_state::failed) return false;
  const std::size_t reach = std::size_t{4 * granularity::large_frame} << f.attempts;
  graph* g = nullptr;
  try {
    g = &home_->take_graph();
    const std::lock_guard hold(g->mutex);
    g->begin(s, f, from, inherited_priority(s, f), home_->options.versions);
    const std::size_t enough = g->at != nullptr ? 1 : 2;
    g->look_ahead(enough, reach);
    g->update_hint();
    if (g->ready() < enough && g->can_be_given_up()) {
      g->give_up();
    } else {
      f.attempts = 0;
      add_graph(s, *g);
      f.flags.fetch_or(frame::promoted, base::memory_order_release);
      count(counter::promotions);
      base::probe::promotion(&s, &f);
      return true;
    }
  } catch (const std::bad_alloc&) {  // then it stays as it is
  }
  if (g != nullptr) home_->put_graph(*g);
  if (f.attempts < most) ++f.attempts;
  return false;
}

inline bool comes_before_graph(strand& s, const frame& f, const closure& c) noexcept {
  graph& g = graph_of(s, f);
  const std::lock_guard hold(g.mutex);
  return !g.entered && g.at != nullptr && g.at->task == &c;
}

/// Notes that tiny tasks were left to their owner until then.
inline void worker::look_again_at(deadline::clock::time_point t) noexcept {
  look_again_ = std::min(look_again_, t);
}

/// Tries all graphs of a strand, without its owner's help. `running`: somebody executes it, and thieves leave
/// tiny tasks alone.
inline strand* worker::take_from_graphs(strand& s, bool running) noexcept {
  for (graph* g = s.graphs.load(base::memory_order_acquire); g != nullptr;
       g = g->outer.load(base::memory_order_acquire)) {
    // Hints, all of them: locks are for those who have something to do behind.
    if (g->owner.load(base::memory_order_relaxed) != &s) return nullptr;  // it has ended meanwhile
    if (!g->may_take.load(base::memory_order_relaxed) && !thorough_) continue;
    if (running && g->speed.tiny_until().lies_ahead()) {
      look_again_at(g->speed.tiny_until().get());
      continue;
    }
    strand* batch = nullptr;
    {
      const std::lock_guard hold(g->mutex);
      // Relaxed: all changes happen under the lock.
      if (g->home == nullptr || g->owner.load(base::memory_order_relaxed) != &s) return nullptr;
      batch = take_from_graph(*g, s);
    }
    if (batch != nullptr) {
      prepare(*batch->node);
      begin(*batch);
      adopt(*batch);
      return batch;
    }
  }
  return nullptr;
}

/// Takes more ready nodes for one of the `takers` behind `first`, where tasks are short and plenty.
/// *Returns*: how many it has then. *Requires*: the lock is held.
inline std::uint32_t take_batch(graph& g, std::size_t takers, graph_node& first) noexcept {
  const std::size_t share = std::min<std::size_t>(g.speed.batch(), g.ready() / takers);
  graph_node* last = &first;
  std::uint32_t count = 1;
  while (count < share && !first.task->may_wait_for_earlier && !g.next_may_wait_for_earlier()) {
    graph_node* const n = g.take();
    if (n == nullptr) break;
    last = last->next = n;
    ++count;
  }
  last->next = nullptr;
  return count;
}

/// *Returns*: a strand that executes nodes of the graph, null if none is ready. *Requires*: the lock is
/// closed.
inline strand* worker::take_from_graph(graph& g, strand& s) noexcept {
  strand* const thief = spare();
  if (thief == nullptr) return nullptr;
  g.look_ahead(home_->takers());
  graph_node* n = g.take(may_take_);
  // What this thief has use for may stand behind much that is ready.
  for (std::size_t ready = g.ready(); may_take_ != nullptr && n == nullptr; ready = g.ready()) {
    g.look_ahead(ready + 1, granularity::large_frame);
    if (g.ready() == ready || ready > granularity::large_frame) break;
    n = g.take(may_take_);
  }
  if (n != nullptr && !engine::take_place(s)) g.give_back(*std::exchange(n, nullptr));
  if (n != nullptr) {
    n->next = nullptr;
    thief->batch_size = may_take_ != nullptr ? 1 : take_batch(g, home_->takers(), *n);
    thief->batch_start = graph::clock::now();
    spare_ = nullptr;
    thief->victim = &s;
    thief->source_graph = &g;
    thief->node = n;
    thief->batch = n->next;
    thief->finished = nullptr;
    thief->priority = n->priority;
    count(counter::steals);
    thief->root.current.store(n->task, base::memory_order_relaxed);     // published by the lock in adopt
    engine::join_run(*thief, *s.run.load(base::memory_order_relaxed));  // constant while the frame is there
  }
  g.update_hint();
  return n != nullptr ? thief : nullptr;
}

/// Tells who could use what is ready now. *Returns*: the waiting owner, if it has to go on; the caller's
/// then. *Requires*: the lock is held.
inline strand* pass_on(graph& g) noexcept {
  g.update_hint();
  if (g.waiter == nullptr || !g.needs_owner()) return nullptr;
  return std::exchange(g.waiter, nullptr);
}

/// Hands in the nodes that a worker has ended, and gives back those it has not begun. Contributions to be
/// folded are added to `folds`. *Requires*: the lock is held.
inline void hand_in(graph& g, graph_node*& unbegun, graph_node*& ended, graph_entry*& folds) noexcept {
  while (unbegun != nullptr) g.give_back(*std::exchange(unbegun, unbegun->next));
  while (ended != nullptr) g.finish(*std::exchange(ended, ended->next), folds);
}

/// A task taken from a graph has ended. *Returns*: the same strand with its next task; or the owner, to be
/// adopted, if it waited; or null.
inline strand* worker::end_graph_task(strand& s) noexcept {
  graph& g = *s.source_graph;
  graph_node* n = std::exchange(s.node, nullptr);
  n->next = std::exchange(s.finished, n);
  if (s.had_children) g.nests.store(true, base::memory_order_relaxed);
  // The next of the batch, unless somebody is hungry.
  if (!s.thrown && s.batch != nullptr && (s.attention.load(base::memory_order_relaxed) & ~observed) == 0) {
    n = s.batch;
    s.batch = n->next;
  } else {
    graph_entry* folds = nullptr;
    strand* owner = nullptr;
    const auto end = graph::clock::now();
    {
      const std::lock_guard hold(g.mutex);
      if (s.thrown) g.fail(s.finished->index, {*std::exchange(s.thrown, std::nullopt), s.finished->task});
      hand_in(g, s.batch, s.finished, folds);
      s.root.current.store(nullptr,
                           base::memory_order_relaxed);  // its frame may end when the lock is released
      n = nullptr;
      if (folds == nullptr) {
        g.look_ahead(home_->takers());
        g.learn_batch(s.batch_start, end, s.batch_size, false, home_->takers());
        if (!g.entered && g.speed.all_tiny(g.nests.load(base::memory_order_relaxed)))
          s.victim->attention.fetch_or(left_alone, base::memory_order_relaxed);  // a hint
        if (!g.tiny() && may_take_ == nullptr) n = g.take();
        if (n != nullptr) {
          s.batch_size = take_batch(g, home_->takers(), *n);
          s.batch_start = graph::clock::now();
          s.batch = n->next;
        }
        owner = pass_on(g);
      }
    }
    if (folds != nullptr) {
      g.fold(folds);
      const std::lock_guard hold(g.mutex);
      owner = pass_on(g);
    }
    if (owner != nullptr) {
      take_from_waiting(*owner);
      if (n == nullptr) return owner;
      home_->submit(*owner);
    } else if (g.may_take.load(base::memory_order_relaxed) && home_->bell.any_waiting()) {
      offer(s, true);
    }
    if (n == nullptr) return nullptr;
  }
  s.node = n;
  s.priority = n->priority;
  prepare(*n);
  count(counter::steals);
  s.root.current.store(n->task, base::memory_order_relaxed);  // thieves go by root.child
  begin(s);
  return &s;
}

/// A closure has ended that was stolen before its frame was promoted. *Returns*: the owner, if it has to go
/// on and is the caller's now.
inline strand* worker::finish_noted(strand& victim, closure& c) noexcept {
  strand* owner = nullptr;
  base::backoff wait;
  for (graph* g = nullptr;;) {
    if (g == nullptr) {  // whoever noted it is about to publish the graph
      wait.wait();
      g = victim.graphs.load(base::memory_order_acquire);
      continue;
    }
    const std::lock_guard hold(g->mutex);
    graph_node* const n = g->take_stolen_node(c);
    if (n == nullptr) {
      g = g->outer.load(base::memory_order_acquire);
      continue;
    }
    // Relaxed: this worker changed it.
    if (c.state.load(base::memory_order_relaxed) == closure_state::failed)
      g->fail(n->index, {c.take_failure(), &c});
    graph_entry* folds = nullptr;
    g->finish(*n, folds);  // it has no contributions apart
    owner = pass_on(*g);
    break;
  }
  return owner;
}

}  // namespace weft::inline WEFT_ABI::sched
