// SPDX-License-Identifier: BSL-1.0
// The thief: how it gets into another worker's strand without taxing the owner, and what it takes out.
#pragma once

#include <weft/sched/detail/divide.hpp>
#include <weft/sched/detail/graph_owner.hpp>
#include <weft/sched/steal_entry.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Tells tracers of a theft, and puts it into the trace. *Returns*: `got`.
inline strand* worker::note_steal(std::uint64_t began, strand* got) noexcept {
  const closure& c = *got->root.current.load(base::memory_order_relaxed);  // set by this worker
  base::probe::steal(c.what->options(c).name, index_, got);
  if (row_ != nullptr) {
    row_->add_search(observe::trace_kind::steal, began, c.what->untraced != nullptr ? c.stamp() : 0);
  }
  return got;
}

/// Tries every worker once, beginning with a random one.
inline strand* worker::steal() {
  const std::uint64_t began = row_ != nullptr ? observe::ticks() : 0;
  auto& all = home_->workers;
  const std::size_t n = all.size(), start = next_random() % n;
  for (std::size_t i = 0; i < n; ++i) {
    worker& victim = *all[(start + i) % n];
    strand* got = nullptr;
    // Acquire pairs with adopt; the strand is checked again under its lock.
    if (&victim != this)
      if (strand* s = victim.running_.load(base::memory_order_acquire)) got = steal_from_running(*s);
    if (got == nullptr) got = steal_from_waiting(victim);
    if (to_continue_ != nullptr) [[unlikely]] {
      strand& owner = *std::exchange(to_continue_, nullptr);
      take_from_waiting(owner);
      home_->submit(owner);
    }
    if (got != nullptr) return note_steal(began, got);
  }
  return nullptr;
}

/// *Returns*: a strand kept for the thief's use, null if there is no memory for one.
inline strand* worker::spare() noexcept {
  if (spare_ == nullptr) {
    try {
      spare_ = &home_->take_strand();
    } catch (const std::bad_alloc&) {
    }
  }
  return spare_;
}

/// Passes by a lock that another thief holds, except in the last look before sleep.
inline bool worker::lock_for_theft(strand& s) noexcept {
  if (!thorough_) return s.mutex.try_lock();
  s.mutex.lock();
  return true;
}

/// Enters a strand that waits: nobody executes it, so its lock is enough.
inline strand* worker::steal_from_waiting(worker& victim) {
  strand* divisible = nullptr;
  strand* const found = victim.waiting_.first_of([&, this](strand& s) -> strand* {
    // Relaxed: a hint.
    if (engine::is_full(s)) return nullptr;
    if (divisible == nullptr && s.divisible.load(base::memory_order_relaxed) != nullptr) divisible = &s;
    if (strand* batch = take_from_graphs(s, false)) return batch;
    if (s.root.child.load(base::memory_order_relaxed) == nullptr || !lock_for_theft(s)) return nullptr;
    strand* got = nullptr;
    if (s.status.load(base::memory_order_relaxed) == strand_status::waiting) {  // ordered by the lock
      count(counter::steal_attempts);
      got = take_from(s);
    }
    s.mutex.unlock();
    return got;
  });
  return found == nullptr && divisible != nullptr ? take_part(*divisible) : found;
}

/// Orders the thief itself where the owner has not answered. *Returns*: whether it is alone inside.
inline bool worker::fence_for(steal_entry& entry) noexcept {
  constexpr int patience = 4096;
  constexpr std::chrono::milliseconds again(1);
  count(counter::barriers);
  const base::fenced how = base::heavy_fence();
  if (how == base::fenced::by_kernel) [[likely]]
    return true;
  count(counter::barriers_refused);
  if (how == base::fenced::by_pages) return true;
  // Nothing but the owner's answer is left. Where that takes long, nobody would wake this thief when it
  // comes.
  look_again_at(deadline::clock::now() + again);
  return entry.wait(patience);
}

/// Enters a strand that is executed: asks its owner to stand still, or orders itself behind a heavy fence.
inline strand* worker::steal_from_running(strand& s) {
  using namespace base;
  // A first look: a task without children, which gives nothing away. Relaxed: a hint; what matters is read
  // again inside.
  if (s.root.child.load(memory_order_relaxed) == nullptr &&
      s.divisible.load(memory_order_relaxed) == nullptr) {
    if (s.cooldown.lies_ahead())
      look_again_at(s.cooldown.last());
    else if (thorough_)
      ask(s);
    return nullptr;
  }
  if (engine::is_full(s)) return nullptr;
  if (strand* batch = take_from_graphs(s, true)) return batch;
  if (strand* part = take_part(s)) return part;
  if (s.cooldown.covers(s.root)) {
    look_again_at(s.cooldown.last());
    return nullptr;
  }
  // Not before sleep: who sleeps is woken for what comes later, not for what is there.
  if (!thorough_ && s.visits.goes_on()) return nullptr;
  // An owner that visits closures does not answer, and has nothing else running.
  if (const graph* const g = s.graphs.load(memory_order_acquire);
      g != nullptr && !thorough_ && g->owner_visits.load(memory_order_relaxed))
    return nullptr;
  if (steal_backoff_ != 0 && !thorough_ && base::clock::now() < no_steal_before_) return nullptr;
  if (s.cooldown.lies_ahead())
    look_again_at(s.cooldown.last());
  else if (thorough_)
    ask(s);  // when announce_hunger came, the cooldown may not have been over
  if (may_take_ != nullptr && in_vain_.covers(s)) return nullptr;
  if (s.root.child.load(memory_order_relaxed) == nullptr || !lock_for_theft(s)) return nullptr;  // as above
  strand* got = nullptr;
  if (s.status.load(memory_order_relaxed) == strand_status::running) {  // ordered by the lock
    count(counter::steal_attempts);
    steal_entry entry(s);
    if (entry.answered() || fence_for(entry)) got = take_from(s);
    const auto is_counted = [](const strand& t) {
      return t.source_graph == nullptr && t.root.current.load(memory_order_relaxed)->counted;
    };
    auto counted = static_cast<std::uint32_t>(got != nullptr && is_counted(*got));
    for (const strand* const t : more_) counted += is_counted(*t);
    if (counted != 0) s.taken.fetch_add(counted, memory_order_relaxed);  // ordered by attention
    // Release pairs with the acquire in attend and look: the owner sees what was taken.
    if (got == nullptr && !s.cooldown.lies_ahead()) s.attention.fetch_or(hungry, memory_order_release);
    if (counted != 0) s.attention.fetch_or(took, memory_order_release);
    if (got == nullptr && may_take_ != nullptr) in_vain_.note(s);
  }
  s.mutex.unlock();
  return got;
}

/// Finds a ready closure, or promotes a frame with more than one thing to do. *Requires*: alone inside the
/// strand. *Returns*: what was found last; `large`: that was promoted.
inline findings worker::look_into(strand& s) noexcept {
  // Frames without parallelism in sight are left to their owner, who is faster alone and stands still
  // meanwhile (granularity::fruitless_search). The next search goes twice as far.
  deadline::clock::time_point start{}, until{};
  const frame* in_vain = nullptr;
  findings found;
  frame* from = s.root.child.load(base::memory_order_acquire);  // as in find_ready
  do {
    try {
      found = find_ready(s, rights_, from, may_take_);
    } catch (const std::bad_alloc&) {  // no memory to search: nothing found
      found = {};
    }
    const bool cools = found.large != nullptr && s.cooldown.covers(*found.large->parent);
    // One task shows whether a frame that had a cooldown is worth a graph now.
    const bool probes = found.large != nullptr && found.ready_above == found.large->parent &&
                        s.cooldown.is_for(*found.large->parent);
    if (probes && found.next) {  // as in a chain: the owner would only wait for it
      found.ready = nullptr;
      s.cooldown.begin(*found.large->parent);
      look_again_at(until = s.cooldown.last());
    }
    if (cools || probes) found.large = nullptr;
    if (cools || found.cooldown) look_again_at(until = s.cooldown.last());
    if (found.large == nullptr) break;
    if (in_vain == nullptr) start = deadline::clock::now();
    if (promote(s, *found.large)) return found;
    if (in_vain == nullptr) in_vain = found.large;
    from = std::exchange(found.large, nullptr)->child.load(base::memory_order_acquire);
  } while (found.ready == nullptr);
  if (in_vain != nullptr) {
    found.only_graphs = false;
    s.cooldown.begin_after_search(*in_vain->parent, deadline::clock::now() - start, until);
  }
  return found;
}

/// Takes a ready closure out. *Requires*: alone inside the strand.
inline strand* worker::take_from(strand& s) noexcept {
  strand* const thief = spare();
  if (thief == nullptr) return nullptr;
  const findings found = look_into(s);
  if (found.large != nullptr) return take_from_graphs(s, true);
  closure* const c = found.ready;
  if (c == nullptr && found.only_graphs) s.visits.begin();
  if (c == nullptr || !engine::take_place(s)) return nullptr;
  take_closure(s, *c, found.ready_above);
  if (more_wanted_ != 0) take_more(s, *found.in, found.ready_above);
  return thief;
}

/// Takes a closure into the strand that spare() has returned. *Requires*: alone inside `s`, of which the
/// thief has a place.
inline void worker::take_closure(strand& s, closure& c, const frame* below) noexcept {
  const auto start = base::clock::now();
  strand* const thief = std::exchange(spare_, nullptr);
  // Relaxed: the owner sees it behind the entry protocol, other thieves under the lock.
  c.state.store(closure_state::stolen, base::memory_order_relaxed);
  count(counter::steals);
  thief->victim = &s;
  thief->victim_below = below;
  thief->victim_cooldown = s.cooldown.last();
  const int own = c.what->options(c).priority;
  thief->priority = own != 0 ? own : s.priority;
  thief->root.current.store(&c, base::memory_order_relaxed);          // published by the lock in adopt
  engine::join_run(*thief, *s.run.load(base::memory_order_relaxed));  // constant while the strand is in use
  thief->batch.start = base::clock::now();
  thief->taking = thief->batch.start - start;
  begin(*thief);
  thief->deepest = s.exposed.deepest_below(c.depth);
  adopt(*thief);
}

/// Takes more closures of a frame from which one was taken, until as many are taken as are left. *Requires*:
/// alone inside `s`.
inline void worker::take_more(strand& s, const frame& f, const frame* below) noexcept {
  closure* ready[granularity::large_frame];
  unsigned n = 0;
  try {
    n = find_all_ready(f, rights_, may_take_, ready);
    more_.reserve(more_.size() + n);
  } catch (const std::bad_alloc&) {  // one has to do
    n = 0;
  }
  const std::size_t most = std::min<std::size_t>(n / 2, more_wanted_);
  for (std::size_t i = 0; i < most; ++i) {
    strand* const thief = spare();
    if (thief == nullptr || !engine::take_place(s)) break;
    take_closure(s, *ready[i], below);
    more_.push_back(thief);
  }
}

/// Notes how long a stolen task took. Where tasks are shorter than the trouble that a theft makes for their
/// owner, a thief pauses between two of them, longer each time; after some of them, all thieves leave their
/// frame alone. *Requires*: the owner cannot pass the task yet.
inline void worker::note_theft(strand& ended) noexcept {
  using namespace granularity;
  const auto now = base::clock::now();
  const auto took = now - ended.batch.start;
  // To bring its end back takes as long as to take it out: as many cache lines travel.
  const base::clock::duration travel = 2 * ended.taking;
  if (took > std::max<base::clock::duration>(short_theft, travel)) {
    steal_backoff_ = 0;
  } else {
    no_steal_before_ = now + first_pause * (1u << steal_backoff_);
    steal_backoff_ = std::min(steal_backoff_ + 1, pause_doublings);
  }
  if (ended.victim_below == nullptr) return;
  if (ended.had_children) {  // it had children: the next one may be a whole tree
    tiny_thefts_ = 0;
    return;
  }
  strand& victim = *ended.victim;
  const frame& below = *ended.victim_below;  // only compared
  const bool first = std::exchange(tiny_in_, &below) != &below;
  if (took > std::max<base::clock::duration>(tiny_theft, travel)) {
    // The first one after a pause may be long because of the pause. Another cooldown may have begun
    // meanwhile, after a search in vain.
    if (!first && tiny_thefts_ == 0 && victim.cooldown.is_for(below) &&
        victim.cooldown.last() == ended.victim_cooldown)
      victim.cooldown.end();
    tiny_thefts_ = 0;
    return;
  }
  if (first) tiny_thefts_ = 0;
  if (++tiny_thefts_ < most_tiny_thefts && !victim.cooldown.is_for(below)) return;
  victim.cooldown.begin(below);
  victim.attention.fetch_or(left_alone, base::memory_order_relaxed);  // a hint
}

/// Asks a strand for stealable closures.
inline void worker::ask(strand& s) noexcept {
  if ((s.attention.load(base::memory_order_relaxed) & hungry) == 0)
    s.attention.fetch_or(hungry, base::memory_order_release);
}

/// Asks every worker for stealable closures.
inline void worker::announce_hunger() noexcept {
  for (auto& victim : home_->workers) {
    strand* s = victim->running_.load(base::memory_order_acquire);  // pairs with adopt
    // A strand that meanwhile runs for somebody else is only asked to make closures that nobody needs.
    if (s != nullptr && !engine::is_full(*s) && !s->cooldown.lies_ahead()) ask(*s);
  }
}

}  // namespace weft::inline WEFT_ABI::sched
