// SPDX-License-Identifier: BSL-1.0
// The life of a worker: execute a strand to its end or until it waits, find the next, else sleep.
#pragma once

#include <weft/context/overflow.hpp>
#include <weft/observe/recorded_body.hpp>
#include <weft/sched/detail/steal.hpp>

#include <cfenv>

namespace weft::inline WEFT_ABI::sched {

inline void worker::start() {
  context_slot& first = home_->contexts.take();
  try {
    thread_ = base::thread(&worker::main, this, &first);
  } catch (...) {
    home_->contexts.put(first);
    throw;
  }
}

inline void worker::main(context_slot* first) {
  std::optional<context::overflow_guard> named_overflow;
  try {
    named_overflow.emplace();
  } catch (const std::exception&) {  // no memory for a signal stack: an overflow then kills without a name
  }
  context::races::hide_accesses();
  set_current(idle_);
  native_.fiber.emplace();
  active_ = &native_;
  switch_to(*first, {});
  native_.fiber.reset();
  if (spare_context_ != nullptr) home_->contexts.put(*spare_context_);
  context::races::show_accesses();
}

/// Each context enters here once and never returns; a retired one continues after its last switch.
inline void worker::loop_on_context(void*) noexcept {
  std::fesetenv(FE_DFL_ENV);  // whoever made the context may have changed its own
  context::set_sticky_float_flags();
  context::races::hide_accesses();
  current().executor->run_switch_action();
  for (;;) {
    worker& w = *current().executor;  // asked anew: the context may have moved to another worker
    strand* s = std::exchange(w.next_, nullptr);
    if (s == nullptr) s = w.find_work();
    if (s == nullptr) {
      w.switch_to(w.native_, {.retired = w.active_});
      continue;
    }
    w.execute(*s);
    worker& now = *current().executor;
    if (now.active_->of_other_size != nullptr) [[unlikely]]
      now.leave_stack();
  }
}

/// Goes on on a stack of the usual size, from one that was made for a body that has left it.
WEFT_COLD inline void worker::leave_stack() noexcept {
  context_slot* fresh = nullptr;
  try {
    fresh = &take_context();
  } catch (...) {  // no memory: it has to do
    return;
  }
  switch_to(*fresh, {.retired = active_});
}

inline void set_inline_limit(strand& s) noexcept {
  // Acquire pairs with end_. A beginning that this misses has set the strand's bit since
  // join_run.
  const bool disabled = inlining_disablers.load(base::memory_order_acquire) != 0;
  // Where a run is recorded, the recorder sees every fork and sync.
  s.inline_limit =
      disabled || s.recorder != nullptr || !s.executor->home().options.inlining ? no_inlining : s.stack_limit;
}

/// Runs the closure for which the strand was made.
inline void run_first_body(strand& s, closure& c) noexcept {
  if (s.recorder != nullptr) [[unlikely]] {
    bool begun = false;
    try {
      observe::recorded_root whole(s);
      begun = true;
      run_body(s, c);
      whole.end();
    } catch (...) {  // what begins or ends the record
      if (!begun) c.what->drop(c);
      if (!s.thrown) s.thrown = std::current_exception();
    }
  } else if (s.row != nullptr && c.what->untraced == nullptr) [[unlikely]] {
    const observe::traced_body here(s, c.what->options(c).name, 0);
    run_body(s, c);
  } else {
    run_body(s, c);
  }
}

/// Executes until the strand ends or waits. `this` may be another worker than the caller's when it returns.
inline void worker::execute(strand& s) {
  if (s.suspended != nullptr) {  // continue its body on its own stack and leave this one
    context_slot& stack = *std::exchange(s.suspended, nullptr);
    if (!s.started) next_ = &s;  // there stands a loop, on a stack made for this body
    switch_to(stack, {.retired = active_});
    return;
  }
  s.stack_limit = active_->inline_limit;
  set_inline_limit(s);
  if (!s.started) s.exposed.begin(context::stack_pointer(), s.deepest);
  s.restore_window();
  bool ended = true;
  if (!s.started) {
    s.started = true;
    closure& c = *s.root.current.load(base::memory_order_relaxed);  // set in begin, by this worker
    s.restore_limit();
    if (look(s)) {
      c.what->drop(c);
      if (s.source_graph != nullptr) s.node->dropped = true;
      count(counter::dropped);
      s.thrown = cancellation();
    } else {
      run_first_body(s, c);
    }
  }
  if (s.pending_at_root()) ended = drain(s, &s.root, true);
  if (!ended) return;
  release_objects(s, s.root.objects);  // a destructor may wait, and another worker go on
  worker& now = *s.executor;
  now.next_ = now.end(s);
}

/// Makes a strand from the pool ready to execute the closure in `root.current`.
inline void worker::begin(strand& s) noexcept {
  const worker_share* const share = s.share.load(base::memory_order_relaxed);  // constant while it is in use
  s.wanted_surplus = workers_of(share, home_->takers()) > 1 ? home_->wanted_surplus : 0;
  s.cap = home_->options.cap;
  s.live = 0;
  s.had_children = false;
  ++s.drains;  // whatever somebody remembers of its frames is over
  s.surplus = 0;
  s.deepest = exposure::unlimited;
  s.forget_thieves();
  s.limit = no_inlining;
  s.floor = s.top = &s.root;
  s.root.objects = s.mark();
  s.started = false;
  s.left.begin_body();
  s.inline_name = nullptr;
}

/// Ends a strand without frames and objects. *Returns*: the strand to be continued next, if any.
inline strand* worker::end(strand& s) noexcept {
  worker_share* const share = s.share.load(base::memory_order_relaxed);  // constant while it is in use
  s.had_children |= s.deferred != 0;
  counters_.add(counter::deferred, std::exchange(s.deferred, 0));
  strand* woken = nullptr;
  if (s.source_graph != nullptr) {
    woken = end_graph_task(s);
    if (woken == &s) return woken;  // with its next task
  }
  running_.store(nullptr, base::memory_order_release);  // see put_aside
  set_current(idle_);
  s.mutex.lock();
  s.status.store(strand_status::idle, base::memory_order_relaxed);  // ordered by the lock
  s.mutex.unlock();
  // Its own closure stood there, whose name others may read while the strand is in use.
  if (s.victim == nullptr) s.closures.release_to(arena_mark{});
  if (s.last_memory != nullptr) [[unlikely]]
    home_->last_memory.put(*std::exchange(s.last_memory, nullptr));
  strand* const continued = s.source_graph != nullptr ? woken
                            : s.victim != nullptr     ? end_stolen(s)
                                                      : set(s.at_end(s));
  s.source_graph = nullptr;
  home_->put_strand(s);
  return go_on_with(continued, share);
}

/// Adopts a strand that is ready, if there is one, behind one of this share. *Returns*: `next`, or null if it
/// has to wait for a worker that its run may have.
inline strand* worker::go_on_with(strand* next, worker_share* share) noexcept {
  if (next == nullptr || next->share.load(base::memory_order_relaxed) != share) [[unlikely]] {
    if (share != nullptr) give_back(*share);
    if (next == nullptr || !engine::admit(*next)) return nullptr;
  }
  adopt(*next);
  return next;
}

/// Marks the stolen closure in its own strand. *Returns*: that strand, if it waited for this.
inline strand* worker::end_stolen(strand& s) noexcept {
  note_theft(s);
  closure& c =
      *s.root.current.load(base::memory_order_relaxed);  // set in begin, by this worker or one before it
  strand& victim = *s.victim;
  closure_state before;
  // Release publishes all that the task did to whoever passes the closure; acquire takes over a waiting
  // strand.
  if (!s.thrown) {
    before = c.state.exchange(closure_state::done, base::memory_order_acq_rel);
  } else {
    c.set_failure(*std::exchange(s.thrown, std::nullopt));
    before = c.state.exchange(closure_state::failed, base::memory_order_acq_rel);
  }
  strand* const waiter = before == closure_state::noted     ? finish_noted(victim, c)
                         : before == closure_state::awaited ? &victim
                                                            : nullptr;
  if (waiter == nullptr) return nullptr;
  take_from_waiting(*waiter);
  return waiter;
}

/// Sets a signal, if there is one. *Returns*: the strand that waited for it, if it is of this engine.
inline strand* worker::set(signal* g) noexcept {
  if (g == nullptr) return nullptr;
  if (g->home != home_) {
    raise_signal(*g);
    return nullptr;
  }
  strand* const waiter = g->set();
  if (waiter != nullptr) take_from_waiting(*waiter);
  return waiter;
}

/// *Returns*: a strand to execute, or null when the engine closes.
inline strand* worker::find_work() {
  engine& e = *home_;
  strand* found = take_kept();
  if (found != nullptr && e.submitted.has_above(found->priority)) {
    e.enqueue(*std::exchange(found, nullptr));
  } else if (found != nullptr && ++kept_in_a_row_ > granularity::most_kept) {
    kept_in_a_row_ = 0;
    const auto due = e.timers.earliest();
    // Those who came before have their turn.
    if (!e.submitted.empty() || (due != timer_queue::never && due <= base::clock::now())) {
      e.enqueue(*std::exchange(found, nullptr));
    } else if (strand* const other = steal()) {
      e.enqueue(*found);
      return other;
    }
  }
  if (found != nullptr) {
    adopt(*found);
    return found;
  }
  kept_in_a_row_ = 0;
  const std::uint64_t began = row_ != nullptr ? observe::ticks() : 0;
  e.searching.fetch_add(1, base::memory_order_relaxed);                      // a hint, see offer
  while (found == nullptr && !e.closing.load(base::memory_order_acquire)) {  // pairs with close
    const auto start = base::clock::now();
    base::backoff wait;
    for (bool first = true;; first = false) {
      if ((found = look_around()) != nullptr || e.closing.load(base::memory_order_acquire)) break;
      if (first) announce_hunger();
      wait.wait();
      if (base::clock::now() - start >= e.options.spin) {
        found = sleep();
        break;
      }
    }
  }
  e.searching.fetch_sub(1, base::memory_order_relaxed);
  if (row_ != nullptr) row_->add_search(observe::trace_kind::search, began);
  if (found != nullptr) {
    e.wakes_in_vain.store(0, base::memory_order_relaxed);
    // Where one found work there may be more: wake the next, who does the same.
    if (e.searching.load(base::memory_order_relaxed) == 0 && e.bell.any_waiting()) {
      count(counter::wakes);
      e.bell.notify_one();
    }
  }
  return found;
}

/// Submitted strands first (what has begun elsewhere goes on), then other workers' strands.
inline strand* worker::look_around() {
  engine& e = *home_;
  if (e.timers.earliest() != timer_queue::never && e.timers.earliest() <= base::clock::now()) [[unlikely]] {
    e.timers.call_due();
    if (strand* const s = take_kept()) {  // which that has made ready
      adopt(*s);
      return s;
    }
  }
  if (strand* s = e.submitted.pop_front()) {
    if (s->status.load(base::memory_order_relaxed) == strand_status::idle)
      begin(*s);  // ordered by the list's lock
    adopt(*s);
    return s;
  }
  if (strand* const s = steal()) return s;
  return take_kept_of_others();
}

/// Takes a strand that another worker has kept and not come to for a while. Watches one at a time, and
/// another one, chosen at random, when that has gone.
inline strand* worker::take_kept_of_others() noexcept {
  using namespace granularity;
  auto& all = home_->workers;
  const std::size_t n = all.size(), start = next_random() % n;
  const bool watched = seen_.of != nullptr;
  bool some = false, stays = false;
  std::uint32_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    worker& w = *all[(start + i) % n];
    if (&w == this) continue;
    // Relaxed, both: first looks; the exchange decides.
    const std::uint32_t number = w.kept_number_.load(base::memory_order_relaxed);
    kept += number;
    if (w.kept_.load(base::memory_order_relaxed) == nullptr) continue;
    some = true;
    if (seen_.of == &w && seen_.number == number) {
      stays = true;
      if (base::clock::now() - seen_.since < kept_for_itself) continue;
      if (strand* const s = w.kept_.exchange(nullptr, base::memory_order_acquire)) {  // pairs with keep
        seen_.of = nullptr;
        adopt(*s);
        return s;
      }
    } else if (!watched && seen_.of == nullptr) {
      seen_ = {&w, number, base::clock::now()};
      stays = true;
    }
  }
  if (!stays) seen_.of = nullptr;
  // While others go from one to the next, somebody looks at them from time to time.
  const bool moves = std::exchange(kept_by_others_, kept) != kept;
  if (thorough_ && (some || moves))
    look_again_at(deadline::clock::now() + (moves ? kept_too_long : kept_and_left));
  return nullptr;
}

inline void worker::move_away() noexcept {
  engine& e = *home_;
  // Pinned workers have their places. One at a time, as each restores where the thread may run. And none at
  // the end, when threads are gone (relaxed: whoever has been told to end has seen it).
  if (e.processor_of(0) || e.closing.load(base::memory_order_relaxed) ||
      e.moves.exchange(true, base::memory_order_acquire))
    return;
  // Relaxed, also below: hints. The kernel thread may be another one meanwhile, or have ended.
  base::move_away(kernel_thread_.load(base::memory_order_relaxed), e.workers.size());
  processor_.store(-1, base::memory_order_relaxed);
  e.moves.store(false, base::memory_order_release);  // pairs with the exchange
}

/// Who wakes up on the processor of another worker, which then waits for it, moves that away: the kernel
/// would leave both there for a time slice of some milliseconds, although other processors are idle.
inline void worker::look_for_place() noexcept {
  const int here = base::current_processor();
  processor_.store(here, base::memory_order_relaxed);
  if (here < 0) return;
  for (const auto& w : home_->workers)
    if (w.get() != this && w->processor_.load(base::memory_order_relaxed) == here && !w->asleep())
      w->move_away();
}

/// Sleeps until something may have happened. *Returns*: what it found when it looked for the last time.
inline strand* worker::sleep() {
  engine& e = *home_;
  e.searching.fetch_sub(1, base::memory_order_seq_cst);  // as all before the fence: pairs with keep
  const std::uint32_t key = e.bell.announce();
  e.kept_told.store(false, base::memory_order_seq_cst);  // behind the key: who is told later changes that
  const bool fenced = base::heavy_fence() != base::fenced::by_nothing;
  announce_hunger();
  thorough_ = true;
  look_again_ = deadline::clock::time_point::max();
  if (!fenced && e.bell.waiting() < e.workers.size())  // what is kept may be seen later
    look_again_at(deadline::clock::now() + granularity::kept_too_long);
  strand* found = e.closing.load(base::memory_order_seq_cst) ? nullptr : look_around();  // pairs with close
  thorough_ = false;
  kernel_thread_.store(base::kernel_thread(), base::memory_order_relaxed);  // see move_away
  asleep_.store(true, base::memory_order_relaxed);                          // for reports, as below
  const std::uint64_t began = row_ != nullptr ? observe::ticks() : 0;
  base::probe::sleep(index_, home_);
  if (found != nullptr || e.closing.load(base::memory_order_seq_cst)) {
    e.bell.cancel();
  } else if (look_again_ != deadline::clock::time_point::max()) {
    e.timed_sleepers.fetch_add(1, base::memory_order_relaxed);  // a hint, see offer
    e.bell.wait_until(key, std::min(look_again_, e.timers.earliest()));
    e.timed_sleepers.fetch_sub(1, base::memory_order_seq_cst);  // as above
  } else if (const auto first = e.timers.earliest(); first != timer_queue::never) {
    count(counter::sleeps);
    e.bell.wait_until(key, first);
  } else {
    count(counter::sleeps);
    e.wakes_in_vain.fetch_add(1, base::memory_order_relaxed);  // a hint; reset by whoever finds work
    e.bell.wait(key);
  }
  asleep_.store(false, base::memory_order_relaxed);
  e.awoken.fetch_add(1, base::memory_order_relaxed);  // a hint, see offer
  if (found == nullptr) look_for_place();
  base::probe::wake(index_, home_);
  if (row_ != nullptr && found == nullptr) row_->add(observe::trace_kind::sleep, began, nullptr);
  e.kept_told.store(false, base::memory_order_relaxed);  // this worker may find something else
  e.searching.fetch_add(1, base::memory_order_relaxed);  // a hint, see offer
  return found;
}

}  // namespace weft::inline WEFT_ABI::sched
