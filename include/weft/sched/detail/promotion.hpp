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
    g->look_ahead(enough, reach, true);
    g->update_hint();
    if (g->ready() < enough && !g->is_wide() && g->can_be_given_up()) {
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

/// No hint tells of closures that were forked since all others had been visited: a thief looks for itself,
/// but not again at once.
inline bool worker::looks_unasked() noexcept {
  const auto now = base::clock::now();
  if (now < next_unasked_) return false;
  next_unasked_ = now + granularity::unasked_look;
  return true;
}

/// Tries all graphs of a strand, without its owner's help. `running`: somebody executes it, and thieves leave
/// tiny tasks alone.
inline strand* worker::take_from_graphs(strand& s, bool running) noexcept {
  for (graph* g = s.graphs.load(base::memory_order_acquire); g != nullptr;
       g = g->outer.load(base::memory_order_acquire)) {
    if (to_continue_ != nullptr) return nullptr;  // that comes first
    // Hints, all of them: locks are for those who have something to do behind.
    if (g->owner.load(base::memory_order_relaxed) != &s) return nullptr;  // it has ended meanwhile
    if (!g->may_take.load(base::memory_order_relaxed) && !thorough_ &&
        (g->owner_near.lies_ahead() || !(g->may_visit.load(base::memory_order_relaxed) || looks_unasked())))
      continue;
    if (running && g->tiny_until.lies_ahead()) {
      look_again_at(g->tiny_until.get());
      continue;
    }
    strand* batch = nullptr;
    {
      // Who has nothing in hand leaves the lock to those who have, unless it is about to sleep.
      if (thorough_)
        g->mutex.lock();
      else if (!g->mutex.try_lock())
        continue;
      const std::lock_guard hold(g->mutex, std::adopt_lock);
      // Relaxed: all changes happen under the lock.
      if (g->home == nullptr || g->owner.load(base::memory_order_relaxed) != &s) return nullptr;
      batch = take_from_graph(*g, s);
    }
    // Who looks for certain tasks may have made others ready.
    if (batch == nullptr && may_take_ != nullptr && g->may_take.load(base::memory_order_relaxed) &&
        home_->bell.any_waiting())
      home_->bell.notify_one();
    if (batch != nullptr) return begin_batch(batch);
  }
  return nullptr;
}

/// Makes a strand ready that was taken from a graph; null stays null.
inline strand* worker::begin_batch(strand* batch) noexcept {
  if (batch == nullptr) return nullptr;
  prepare(*batch->node);
  begin(*batch);
  adopt(*batch);
  batch->batch.start = graph::clock::now();
  return batch;
}

/// Begins a batch with `first`, which was taken, and takes more ready nodes for one of the `takers` where
/// tasks are short and plenty. *Requires*: the lock is held.
inline void take_batch(graph& g, std::size_t takers, graph_node& first, node_batch& batch) noexcept {
  const std::size_t share = std::min<std::size_t>(g.speed.batch(), g.ready() / takers);
  graph_node* last = &first;
  std::uint32_t count = 1;
  while (count < share && !first.task->may_wait_for_earlier) {
    graph_node* const n = g.take_behind();
    if (n == nullptr) break;
    last = last->next = n;
    ++count;
  }
  last->next = nullptr;
  batch = {.unbegun = first.next, .last = last, .left = count - 1, .taken = count};
}

/// Tells who could use what is ready now. *Returns*: the waiting owner, if it has to go on; the caller's
/// then. *Requires*: the lock is held.
inline strand* pass_on(graph& g) noexcept {
  g.update_hint();
  if (g.waiter == nullptr || !g.needs_owner()) return nullptr;
  return std::exchange(g.waiter, nullptr);
}

/// *Returns*: a strand that executes nodes of the graph, null if none is ready. *Requires*: the lock is
/// closed.
inline strand* worker::take_from_graph(graph& g, strand& s) noexcept {
  strand* const thief = spare();
  if (thief == nullptr) return nullptr;
  g.visit_for(home_->takers(), false);
  graph_node* n = g.take(may_take_);
  // What this thief has use for may stand behind much that is ready.
  for (std::size_t ready = g.ready(); may_take_ != nullptr && n == nullptr; ready = g.ready()) {
    g.visit_ahead(ready + 1, granularity::large_frame, false);
    if (g.ready() == ready || ready > granularity::large_frame) break;
    n = g.take(may_take_);
  }
  if (n != nullptr && !engine::take_place(s)) g.give_back(*std::exchange(n, nullptr));
  if (n != nullptr) {
    take_batch(g, may_take_ != nullptr ? SIZE_MAX : home_->takers(), *n, thief->batch);
    spare_ = nullptr;
    thief->victim = &s;
    thief->source_graph = &g;
    thief->node = n;
    thief->priority = n->priority;
    count(counter::steals);
    thief->root.current.store(n->task, base::memory_order_relaxed);     // published by the lock in adopt
    engine::join_run(*thief, *s.run.load(base::memory_order_relaxed));  // constant while the frame is there
    if (strand* const owner = pass_on(g)) to_continue_ = owner;         // as below
    return thief;
  }
  if (g.owner_near.lies_ahead()) look_again_at(g.owner_near.get());
  // It may have visited something for the owner. Not taken from the waiting strands here: their lock may be
  // held.
  if (strand* const owner = pass_on(g)) to_continue_ = owner;
  return nullptr;
}

/// Takes another node where somebody who takes one after the other leaves as many as it has taken.
/// *Requires*: one of them has not ended.
inline strand* worker::take_beside(graph& g, strand& s, std::size_t taken) noexcept {
  strand* batch = nullptr;
  strand* owner = nullptr;
  if (!g.mutex.try_lock()) return nullptr;
  {
    const std::lock_guard hold(g.mutex, std::adopt_lock);
    g.visit_ahead(taken + 1, 2 * granularity::large_frame, false);
    if (g.ready() > taken) batch = take_from_graph(g, s);
    if (batch == nullptr) owner = pass_on(g);
  }
  if (batch == nullptr && g.may_take.load(base::memory_order_relaxed) && home_->bell.any_waiting())
    home_->bell.notify_one();  // as in take_from_graphs
  if (owner == nullptr) owner = std::exchange(to_continue_, nullptr);
  if (owner != nullptr) {
    take_from_waiting(*owner);
    home_->submit(*owner);
  }
  return begin_batch(batch);
}

/// Ends a node of a worker's batch without the lock of its graph, and keeps for the batch what becomes ready
/// by that. *Returns*: nodes that have to be made ready for all, under the lock.
inline graph_node* keep_ready(const graph& g, node_batch& batch, graph_node& ended, bool owner) noexcept {
  graph_node *kept = nullptr, *last = nullptr;
  graph_node* for_all = nullptr;
  std::uint32_t count = 0;
  ended.ran = true;
  release_waiting(ended, [&](graph_node& n) {  // the last one in reference order first
    const bool keeps = !g.is_for_all(n, owner);
    n.next = std::exchange(keeps ? kept : for_all, &n);
    if (keeps && count++ == 0) last = &n;
  });
  batch.keep(kept, last, count);
  return for_all;
}

/// Whether a worker may go on with its batch, without the lock of the graph. `attention`: of its strand.
inline bool may_go_on(const node_batch& batch, std::uint8_t attention) noexcept {
  return batch.unbegun != nullptr && batch.kept < 2 * granularity::most_kept_nodes &&
         !(batch.untold && batch.kept != 0) && (attention & ~(observed | hungry)) == 0;
}
/// Whether what it keeps beside its next task is little, so that it may wait.
inline bool keeps_few(const graph& g, const node_batch& batch) noexcept {
  return batch.left <= g.may_keep.load(base::memory_order_relaxed);  // a hint
}
/// Whether it better does so.
inline bool goes_on(const graph& g, const node_batch& batch, const engine& home,
                    std::uint8_t attention) noexcept {
  if (!may_go_on(batch, attention) || batch.kept >= granularity::most_kept_nodes) return false;
  if (batch.kept == 0) return batch.left == 1 || (attention & hungry) == 0;
  // Hints. Others have something to do, or nobody needs it.
  return keeps_few(g, batch) &&
         (batch.left == 1 || g.may_take.load(base::memory_order_relaxed) || !home.any_idle());
}

/// Hands in what a worker has ended, gives back what it has not begun, and makes ready what is `for_all`.
/// Contributions to be folded are added to `folds`. `keeps`: the worker would rather keep the first that
/// became ready. *Returns*: that, if so. *Requires*: the lock is held.
inline graph_node* hand_in(graph& g, node_batch& batch, graph_node* for_all, bool keeps,
                           graph_entry*& folds) noexcept {
  g.note_kept(batch.kept);
  while (for_all != nullptr) g.make_ready(*std::exchange(for_all, for_all->next));
  while (batch.ended != nullptr) g.finish(*std::exchange(batch.ended, batch.ended->next), folds);
  graph_node* first = nullptr;
  if (keeps && batch.kept != 0 && batch.unbegun != nullptr && folds == nullptr && g.may_be_kept())
    first = std::exchange(batch.unbegun, batch.unbegun->next);
  while (batch.unbegun != nullptr) g.give_back(*std::exchange(batch.unbegun, batch.unbegun->next));
  return first;
}

/// Reports a thief's batch, and takes the next one. *Returns*: its first node, null if there is none for this
/// worker. `owner`: is set if it waited and has to go on; then it is the caller's. *Requires*: the lock is
/// held. *Effects*: opens it.
inline graph_node* worker::next_batch(strand& s, graph_node* for_all, graph::clock::time_point end,
                                      strand*& owner) noexcept {
  graph& g = *s.source_graph;
  const node_batch done = s.batch;
  graph_entry* folds = nullptr;
  if (s.thrown) g.fail(done.ended->index, {*std::exchange(s.thrown, std::nullopt), done.ended->task});
  graph_node* n = hand_in(g, s.batch, for_all, may_take_ == nullptr && !g.tiny(), folds);
  s.root.current.store(nullptr, base::memory_order_relaxed);  // its frame may end when the lock is released
  if (folds != nullptr) {
    g.mutex.unlock();
    g.fold(folds);
    g.mutex.lock();
  } else {
    if (n == nullptr) g.visit_for(home_->takers(), false);
    g.learn_batch(done, end, false, home_->takers());
    if (!g.entered && g.speed.all_tiny(g.nests.load(base::memory_order_relaxed)))
      s.victim->attention.fetch_or(left_alone, base::memory_order_relaxed);  // a hint
    if (n == nullptr && !g.tiny() && may_take_ == nullptr) n = g.take();
    if (n != nullptr) take_batch(g, home_->takers(), *n, s.batch);
  }
  owner = pass_on(g);
  g.mutex.unlock();
  return n;
}

/// A task taken from a graph has ended. *Returns*: the same strand with its next task; or the owner, to be
/// adopted, if it waited; or null.
inline strand* worker::end_graph_task(strand& s) noexcept {
  graph& g = *s.source_graph;
  graph_node& ended = *std::exchange(s.node, nullptr);
  const bool first = s.batch.in_first();
  const auto end_of_first = first ? graph::clock::now() : graph::clock::time_point();
  if (first && !s.had_children) s.batch.first_took = end_of_first - s.batch.start;
  ended.next = std::exchange(s.batch.ended, &ended);
  if (s.had_children && !g.nests.load(base::memory_order_relaxed))
    g.nests.store(true, base::memory_order_relaxed);
  graph_node* for_all = nullptr;
  if (!s.thrown && may_take_ == nullptr && g.may_be_reported_later(ended))
    for_all = keep_ready(g, s.batch, ended, false);
  else
    s.batch.untold = true;
  const std::uint8_t attention = s.attention.load(base::memory_order_relaxed);
  const bool alone = !s.thrown && for_all == nullptr;  // nothing to be done under the lock at once
  bool locked = false;
  graph_node* n = nullptr;
  if (alone && (goes_on(g, s.batch, *home_, attention) ||
                (may_go_on(s.batch, attention) && keeps_few(g, s.batch) && !(locked = g.mutex.try_lock())))) {
    n = s.batch.next();
  } else {
    const auto end = first ? end_of_first : graph::clock::now();
    if (!locked) g.mutex.lock();
    strand* owner = nullptr;
    n = next_batch(s, for_all, end, owner);
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
  if (s.batch.in_first()) s.batch.start = graph::clock::now();
  return &s;
}

/// A body is about to wait. What it waits for may be behind it in a batch, or wait itself for a task that was
/// not reported: hands in the batches of the strand.
inline void worker::give_back_batches(strand& s) noexcept {
  if (s.source_graph != nullptr) give_back_batch(s, *s.source_graph, s.batch);
  // Acquire: as in graph_of.
  for (graph* g = s.graphs.load(base::memory_order_acquire); g != nullptr;
       g = g->outer.load(base::memory_order_acquire))
    give_back_batch(s, *g, g->own);
}
inline void worker::give_back_batch(strand& s, graph& g, node_batch& batch) noexcept {
  if (batch.unbegun == nullptr && batch.ended == nullptr) return;
  graph_entry* folds = nullptr;
  {
    const std::lock_guard hold(g.mutex);
    hand_in(g, batch, nullptr, false, folds);
    // The one that waits: that is not to be counted as its length.
    batch = {.taken = 1, .start = graph::clock::now(), .first_took = node_batch::waited};
  }
  if (folds != nullptr) g.fold(folds);
  strand* owner = nullptr;
  {
    const std::lock_guard hold(g.mutex);
    owner = pass_on(g);
  }
  if (owner != nullptr) {
    take_from_waiting(*owner);
    home_->submit(*owner);
  }
  if (g.may_take.load(base::memory_order_relaxed) && home_->bell.any_waiting()) offer(s, true);
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
