// SPDX-License-Identifier: BSL-1.0
// How a strand waits: as data if no body is on the stack, otherwise with its stack; never by blocking the
// worker.
#pragma once

#include <weft/context/race_hooks.hpp>
#include <weft/sched/detail/engine.hpp>

namespace weft::inline WEFT_ABI::sched {

using counter = observe::worker_counters;

/// Leaves the current stack for `to`, where `first` is done before anything else.
/// On return the calling flow is executed again, possibly by another worker. Always inline, as the switch of
/// a fiber is: a return right after the jump would be mispredicted.
WEFT_ALWAYS_INLINE void worker::switch_to(context_slot& to, switch_action first) noexcept {
  context_slot& from = *active_;
  switch_action_ = first;
  active_ = &to;
  // A context that is away may end there, and must not be hidden then.
  context::races::show_accesses();
  context::fiber::switch_to(*from.fiber, *to.fiber);
  context::races::hide_accesses();
  current().executor->run_switch_action();
}

/// Runs on the stack just switched to, while the one left behind is really left.
inline void worker::run_switch_action() noexcept {
  const switch_action e = std::exchange(switch_action_, {});
  if (e.retired != nullptr && e.retired != &native_) put_context(*e.retired);
  if (e.waits != nullptr && !put_aside(*e.waits, e.what)) {
    if (e.next == nullptr)
      adopt(*(next_ = e.waits));
    else
      home_->enqueue(*e.waits);
  }
  if (e.next != nullptr) adopt(*e.next);
}

inline context_slot& worker::take_context() {
  if (context_slot* const c = std::exchange(spare_context_, nullptr)) [[likely]]
    return *c;
  return home_->contexts.take();
}
inline void worker::put_context(context_slot& c) noexcept {
  if (spare_context_ == nullptr && c.of_other_size == nullptr)
    spare_context_ = &c;
  else
    home_->contexts.put(c);
}

inline void worker::keep(strand& s) noexcept {
  engine& e = *home_;
  // Relaxed: what others see of it only tells them that the strand is another one.
  kept_number_.store(kept_number_.load(base::memory_order_relaxed) + 1, base::memory_order_relaxed);
  strand* const before = take_kept();
  // Hands the strand over. No exchange, for only this worker puts strands there. It comes before the look at
  // sleepers, who look there behind a heavy fence.
  base::owner_store(kept_, &s);
  if (before != nullptr) return e.enqueue(*before);
  // Who searches, sleeps for a moment, or was told, looks again behind a heavy fence before it sleeps.
  if (e.bell.any_waiting() && base::owner_load(e.searching) == 0 && base::owner_load(e.timed_sleepers) == 0 &&
      !base::owner_load(e.kept_told)) {
    e.kept_told.store(true, base::memory_order_relaxed);  // ordered by the release in notify_one
    e.bell.notify_one();
  }
}
/// *Returns*: the strand that the worker has kept, if there is one, not adopted.
inline strand* worker::take_kept() noexcept {
  if (kept_.load(base::memory_order_relaxed) == nullptr) return nullptr;  // its own store, or taken
  return kept_.exchange(nullptr, base::memory_order_acquire);  // pairs with keep: others may have had it
}

/// What a strand waits for, in words.
inline const char* reason_of(const wait_reason& what) noexcept {
  if (what.task != nullptr) return what.task->what->run != nullptr ? "a task elsewhere" : "an event";
  if (what.large != nullptr) return "a ready task";
  return what.happens->what != nullptr ? what.happens->what : "the end of a run";
}

/// Gives back the place of a strand that this worker has put aside or ended. A strand that has it now is kept
/// if it goes on, and submitted if it begins.
WEFT_COLD inline void worker::give_back(worker_share& share) noexcept {
  const bool was_full = share.full();
  strand* const next = share.give_back();
  if (next == nullptr) {
    if (was_full) home_->tell_sleepers();
  } else if (may_take_ != nullptr ||  // the hand of a thief outside keeps nothing
             next->status.load(base::memory_order_relaxed) == strand_status::idle) {  // nobody else has it
    home_->enqueue(*next);
  } else {
    keep(*next);
  }
}

/// Publishes the strand as waiting: thieves may enter it, and whoever ends what it waits for continues it.
/// *Returns*: false if that has happened already; then the strand is the caller's, to be adopted.
inline bool worker::put_aside(strand& s, const wait_reason& what) noexcept {
  using namespace base;
  worker_share* const share = s.share.load(memory_order_relaxed);  // the strand may soon be somebody else's
  s.had_children |= s.deferred != 0;
  counters_.add(counter::deferred, std::exchange(s.deferred, 0));
  if (row_ != nullptr) [[unlikely]]
    observe::interrupt_slices(s, reason_of(what), what.happens);
  probe::wait_begin(reason_of(what), index_, &s);
  give_back_batches(s);
  running_.store(nullptr, memory_order_release);  // a hint for thieves; they check the status under the lock
  set_current(idle_);
  // Where nothing is pending, and no body gives work away, thieves need not find it, and nobody enters but
  // who describes it. Relaxed: its own stores.
  const bool listed =
      s.root.child.load(memory_order_relaxed) != nullptr || s.divisible.load(memory_order_relaxed) != nullptr;
  s.waiting_at = listed ? this : nullptr;
  s.awaits = what;
  s.waits.store(s.waits.load(memory_order_relaxed) + 1, memory_order_relaxed);  // published with the status
  if (listed) {
    s.mutex.lock();
    s.status.store(strand_status::waiting, memory_order_relaxed);  // ordered by the lock
    s.mutex.unlock();
    waiting_.push_back(s);
  } else {
    s.status.store(strand_status::waiting_alone, memory_order_release);  // pairs with look_at_waiting_alone
  }
  // From success on the strand belongs to whoever ends the closure or sets the signal: release hands
  // everything over; acquire takes the results if it has ended.
  bool waits;
  if (what.task != nullptr) {
    closure_state expected = closure_state::stolen;
    waits = what.task->state.compare_exchange_strong(expected, closure_state::awaited, memory_order_acq_rel);
  } else if (what.large != nullptr) {
    graph& g = *what.large;
    const std::lock_guard hold(g.mutex);
    waits = !g.all_ended() && !g.needs_owner() && (g.ready() == 0 || g.next_is_for_thieves());
    if (waits) g.waiter = &s;
  } else {
    std::uint32_t expected = signal::off;
    waits = what.happens->state.compare_exchange_strong(expected, signal::awaited, memory_order_acq_rel);
  }
  if (waits) {
    if (share != nullptr) [[unlikely]]
      give_back(*share);
    return true;
  }
  if (listed) waiting_.remove(s);
  return false;
}

/// Waits without another stack, for want of memory, until the task has ended or for some time, when there may
/// be a stack. This cannot deadlock within one runtime: along the chain of strands that wait for stolen
/// closures there is always one that runs, or is taken over by whoever ended its closure. (Out of memory,
/// with runs nested between two runtimes, and for a task that a thief outside has given back, it may, until
/// there is a stack.)
inline void worker::wait_in_place(strand& s, const wait_reason& what) noexcept {
  base::backoff wait;
  s.executor->give_back_batches(s);
  worker_share* const share = s.share.load(base::memory_order_relaxed);  // constant while it is in use
  if (share != nullptr)
    if (strand* const next = share->give_back()) s.executor->home().enqueue(*next);
  int rounds = 256;
  do {
    wait.wait();
    look(s);
  } while (what.task != nullptr && --rounds != 0 &&
           what.task->state.load(base::memory_order_acquire) == closure_state::stolen);
  while (share != nullptr && !share->try_take()) wait.wait();
}

inline bool worker::await(strand& s, const wait_reason& what, bool as_data) {
  if (as_data) {
    s.suspended = nullptr;
    count(counter::parkings);
    if (put_aside(s, what)) return false;
    adopt(s);
    return true;
  }
  context_slot* fresh = nullptr;
  try {
    fresh = &take_context();
  } catch (...) {
    wait_in_place(s, what);
    return true;
  }
  count(counter::suspensions);
  s.suspended = active_;
  switch_to(*fresh, {.waits = &s, .what = what});
  return true;
}

/// *Returns*: the strand, which was kept; null if it is submitted, since another one is more urgent.
WEFT_COLD inline strand* worker::unless_urgent(strand& s) noexcept {
  if (!home_->submitted.has_above(s.priority)) return &s;
  home_->enqueue(s);
  return nullptr;
}

inline void worker::await_signal(strand& s, signal& g, context_slot& meanwhile) noexcept {
  count(counter::suspensions);
  s.suspended = active_;
  context::races::hide_accesses();  // as in all that wait
  // A body that can go on is changed to at once, without a scheduler loop between.
  context_slot* to = &meanwhile;
  strand* next = kept_in_a_row_ < granularity::most_kept ? take_kept() : nullptr;
  if (next != nullptr && !home_->submitted.empty()) [[unlikely]]
    next = unless_urgent(*next);
  if (next != nullptr) {
    ++kept_in_a_row_;
    if (next->suspended != nullptr) {
      to = std::exchange(next->suspended, nullptr);
      put_context(meanwhile);
    } else {
      next_ = next;
    }
  }
  switch_to(*to, {.waits = &s, .what = {.happens = &g}, .next = next});
  context::races::show_accesses();
}

WEFT_FUNCTION void raise_signal(signal& g) noexcept {
  const strand& s = current();
  if (worker* const w = s.executor; !is_outside(s) && g.home == &w->home()) {  // which does not close
    if (strand* const waiter = g.set()) {
      worker::take_from_waiting(*waiter);
      if (engine::admit(*waiter)) w->keep(*waiter);
    }
    return;
  }
  // The waiter's engine must not close while the strand is handed back to it.
  engine* const e = g.home;
  if (e != nullptr) e->visitors.fetch_add(1, base::memory_order_relaxed);  // before set, which releases
  if (strand* const waiter = g.set()) {
    worker::take_from_waiting(*waiter);
    e->submit(*waiter);
  }
  if (e != nullptr) e->visitors.fetch_sub(1, base::memory_order_release);  // pairs with close
}

inline bool await(strand& s, closure& stolen, bool as_data) {
  return s.executor->await(s, {.task = &stolen}, as_data);
}

inline bool sleepers_near(const strand& s) noexcept {
  return s.wanted_surplus != 0 && s.executor->home().bell.any_waiting();
}

/// If the wakes of this strand have brought nobody for some time, sleepers may wait for the processor of the
/// caller: moves them away, if it may (granularity::wake_answered).
inline void look_for_answer(strand& s, std::chrono::nanoseconds now) noexcept {
  engine& e = s.executor->home();
  if (s.unanswered.count() == 0) return;
  if (e.awoken.load(base::memory_order_relaxed) != s.awoken) {
    s.unanswered = {};
    s.moved_sleepers = 0;
    return;
  }
  constexpr unsigned doublings = 5;
  if (now - s.unanswered < granularity::wake_answered * (1u << s.moved_sleepers)) return;
  s.unanswered = now;
  s.moved_sleepers = std::min(s.moved_sleepers + 1, doublings);
  unsigned most = 4;
  for (const auto& w : e.workers)
    if (w->asleep() && most-- != 0) w->move_away();
}

/// *Cost*: a system call at most every 20 microseconds; more rarely if it is not certain that there is
/// something to steal and earlier wakes found nothing.
WEFT_COLD inline void offer(strand& s, bool certain) noexcept {
  engine& e = s.executor->home();
  // Relaxed, both: hints. A searching worker looks again behind a heavy fence before it sleeps.
  if (e.searching.load(base::memory_order_relaxed) != 0 || engine::is_full(s)) return;
  if (s.cooldown.any() && e.timed_sleepers.load(base::memory_order_relaxed) != 0) return;
  const unsigned wakes_in_vain = certain ? 0 : e.wakes_in_vain.load(base::memory_order_relaxed);
  const auto now = base::clock::now().time_since_epoch();
  // While tasks pass fast, enter asks more rarely.
  s.quiet_tasks = now - std::exchange(s.last_look, now) < granularity::fast_task
                      ? std::min(2 * s.quiet_length + 1, 7u)
                      : 0;
  s.quiet_length = s.quiet_tasks;
  look_for_answer(s, now);
  // A worker that was just woken searches for longer than the interval, or there is none.
  using granularity::wake_interval;
  const auto interval = wake_interval * (1u << std::min(wakes_in_vain, granularity::wake_doublings));
  if ((!certain || e.options.spin > 2 * wake_interval) && now - s.last_offer < interval) return;
  s.last_offer = now;
  if (s.unanswered.count() == 0) {
    s.unanswered = now;
    s.awoken = e.awoken.load(base::memory_order_relaxed);  // a hint, as in look_for_answer
  }
  s.executor->count(counter::wakes);
  e.bell.notify_one();
}

WEFT_COLD inline std::byte* borrow_last_memory(strand& s) noexcept {
  // For a strand that has no block yet, and so no reserve: a frame elsewhere than in a block would lead the
  // arena there when it ends.
  if (s.closures.mark().end != nullptr || s.last_memory != nullptr) return nullptr;
  return s.last_memory = s.executor->home().last_memory.take();
}

WEFT_FUNCTION void count_inlined(strand& s) noexcept { s.executor->count(counter::inlined); }
inline void count_capped(strand& s) noexcept { s.executor->count(counter::capped); }
WEFT_FUNCTION void count_division(strand& s) noexcept { s.executor->count(counter::divisions); }

WEFT_FUNCTION unsigned count_workers(const strand& s) noexcept {
  return workers_of(s.share.load(base::memory_order_relaxed), s.executor->home().options.workers);
}
inline void count_dropped(strand& s) noexcept { s.executor->count(counter::dropped); }

}  // namespace weft::inline WEFT_ABI::sched
