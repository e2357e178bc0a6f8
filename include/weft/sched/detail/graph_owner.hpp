// SPDX-License-Identifier: BSL-1.0
// How the owner of a promoted frame executes it: task by task from the graph, until that ends or is left.
#pragma once

#include <weft/sched/detail/promotion.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Counts what a graph has done that is about to end.
inline void count_done(strand& s, graph& g) noexcept {
  s.executor->count(counter::renames, g.renames());
  s.executor->count(counter::folds, g.folds());
  s.executor->count(counter::replayed, g.replayed());
}

/// The owner goes on without the graph, behind `last`, up to which all have ended. *Requires*: the lock is
/// closed.
inline void leave_graph(strand& s, frame& f, graph& g, closure& last) noexcept {
  // All this is there for a thief that sees the frame without the flag: pairs with find_ready.
  last.state.store(closure_state::done, base::memory_order_relaxed);
  base::owner_store(f.current, &last);
  remove_graph(s, g);
  count_done(s, g);
  const bool tell = g.speed.all_tiny(g.nests.load(base::memory_order_relaxed));
  const auto began = g.speed.began();
  g.give_up();
  s.cooldown.begin_since(*f.parent, began);
  if (tell) s.attention.fetch_or(left_alone, base::memory_order_relaxed);  // for the owner itself
  f.flags.fetch_and(static_cast<std::uint8_t>(~frame::promoted), base::memory_order_release);
  s.executor->count(counter::demotions);
  base::probe::demotion(&s, &f);
}

/// The graph has nothing left to do. *Requires*: the lock is held.
inline void end_graph(strand& s, frame& f, graph& g) noexcept {
  if (g.failed()) {
    placed_exception e = g.take_failure();
    f.close(std::move(e.error), e.place);
  }
  remove_graph(s, g);                                         // thieves recognise by `owner` that it is over
  f.flags.fetch_or(frame::over, base::memory_order_relaxed);  // for the owner alone
  count_done(s, g);
  g.end();
}

/// The owner reports what it has ended, the last at `end`, and gives back what it has not begun.
/// Contributions to be folded are added to `folds`. *Returns*: what it goes on with; maybe null. *Requires*:
/// the lock is held.
inline graph_node* report(strand& s, frame& f, graph& g, graph::clock::time_point end, graph_node* for_all,
                          graph_entry*& folds) noexcept {
  const bool stopped = s.run.load(base::memory_order_relaxed)->stopped.load(base::memory_order_acquire);
  if (f.is(frame::closed)) g.fail(stopped || g.at == nullptr ? 0 : g.at->index, f.take_failure());
  if (g.at != nullptr) g.at->next = std::exchange(g.own.ended, g.at);
  g.at = nullptr;
  if (g.own.taken != 0) g.learn_batch(g.own, end, true, s.executor->home().takers());
  // Who visits closures for long keeps nobody else from what is ready.
  const bool keeps = !g.has_local() && !g.unprofitable() && !g.owner_would_visit();
  graph_node* const next = hand_in(g, g.own, for_all, keeps, folds);
  g.own = {};
  return next;
}

/// What the owner does next, decided under the lock.
enum class owner_step : std::uint8_t {
  run,         ///< the task of graph::at
  drop,        ///< it
  fold,        ///< contributions
  write_back,  ///< with the values of renamed objects
  wait,        ///< nothing is ready
  ended,       ///< the graph has ended
  left,        ///< the owner goes on without it
};

/// `now`: when the owner came to the lock. *Requires*: that is held.
inline owner_step choose_step(strand& s, frame& f, graph& g, graph::clock::time_point now,
                              graph_node* for_all, graph_entry*& folds) noexcept {
  g.entered = true;
  graph_node* n = report(s, f, g, now, for_all, folds);
  if (folds != nullptr) return owner_step::fold;
  if (g.must_write_back()) return owner_step::write_back;
  const bool unprofitable = g.unprofitable();
  if (closure* const last = unprofitable ? g.left_behind() : nullptr) {
    leave_graph(s, f, g, *last);
    return owner_step::left;
  }
  if (n == nullptr && unprofitable) n = g.take_for_owner();
  if (n == nullptr || !unprofitable) g.visit_for(s.executor->home().takers(), true);
  if (n == nullptr) {
    if (g.must_write_back())
      return owner_step::write_back;  // all have ended while visit_for had opened the lock
    n = g.take_for_owner();
  }
  if (n == nullptr) {
    if (!g.all_ended()) return owner_step::wait;
    end_graph(s, f, g);
    return owner_step::ended;
  }
  g.at = n;
  n->next = nullptr;
  base::owner_store(f.current, n->task);
  if (g.must_drop(*n)) {
    n->dropped = true;
    return owner_step::drop;
  }
  if (!g.failed()) {
    // Where a thief visits, it comes back soon, and visits in its place.
    take_batch(g, g.tiny() ? 1 : g.being_visited() ? SIZE_MAX : s.executor->home().takers(), *n, g.own);
    g.owner_near.set(now + granularity::owner_stays_away);
  }
  return owner_step::run;
}

/// The owner's next task. *Returns*: null if there is none now, for the reason noted in `outcome`.
inline closure* next_promoted(strand& s, frame& f, graph& g, bool as_data, graph_outcome& outcome) {
  base::backoff patience;
  for (unsigned round = 0;; ++round) {
    // Without the lock, while nothing special has happened: the next of the batch.
    graph_node* for_all = nullptr;
    if (g.own.taken != 0 && g.at != nullptr && !f.is(frame::closed)) {
      if (g.may_be_reported_later(*g.at))
        for_all = keep_ready(g, g.own, *g.at, true);
      else
        g.own.untold = true;
      if (for_all == nullptr && !g.wants_owner.load(base::memory_order_relaxed) &&
          goes_on(g, g.own, s.executor->home(), base::owner_load(s.attention))) {
        g.at->next = std::exchange(g.own.ended, g.at);
        g.at = g.own.next();
        base::owner_store(f.current, g.at->task);
        return g.at->task;
      }
    }
    if (look(s) || s.run.load(base::memory_order_relaxed)->stopped.load(base::memory_order_acquire))
      f.close(cancellation(), nullptr);
    graph_entry* folds = nullptr;
    owner_step now;
    bool tiny, visited;
    const auto arrival = graph::clock::now();
    {
      // Relaxed: a hint. Others wait for what the owner visits.
      if (g.wants_owner.load(base::memory_order_relaxed))
        g.mutex.lock_first();
      else
        g.mutex.lock();
      const std::lock_guard hold(g.mutex, std::adopt_lock);
      now = choose_step(s, f, g, arrival, for_all, folds);
      g.update_hint();
      tiny = g.tiny();
      visited = g.being_visited();
    }
    switch (now) {
      case owner_step::ended:
      case owner_step::left:
        s.executor->home().put_graph(g);
        outcome = now == owner_step::left ? graph_outcome::left : graph_outcome::ended;
        return nullptr;
      case owner_step::write_back:
        g.write_back();
        continue;
      case owner_step::fold:
        g.fold(folds);
        continue;
      case owner_step::drop:
        g.at->task->what->drop(*g.at->task);
        count_dropped(s);
        continue;
      case owner_step::run:
      case owner_step::wait:
        break;
    }
    if (g.may_take.load(base::memory_order_relaxed) && sleepers_near(s)) offer(s, !tiny);
    if (now == owner_step::run) return g.at->task;
    if (round < 32 || visited) {
      patience.wait();
    } else if (!s.executor->await(s, {.large = &g}, as_data)) {
      outcome = graph_outcome::aside;
      return nullptr;
    }
  }
}

inline graph_outcome run_promoted(strand& s, frame& f, bool as_data) {
  graph& g = graph_of(s, f);
  for (;;) {
    graph_outcome outcome{};
    closure* const c = next_promoted(s, f, g, as_data, outcome);
    if (c == nullptr) return outcome;
    prepare(*g.at);
    enter(s, f, *c);
    const bool first = g.own.in_first();
    if (first) g.own.start = graph::clock::now();
    run_body(s, *c);
    if (first && s.top == &f) g.own.first_took = graph::clock::now() - g.own.start;
    if (s.top != &f) {
      g.nests.store(true, base::memory_order_relaxed);
      s.visits.end();
      return graph_outcome::opened;
    }
    release_objects(s, f.objects);
  }
}

}  // namespace weft::inline WEFT_ABI::sched
