// SPDX-License-Identifier: BSL-1.0
// How an event outside the runtime becomes a closure, and how it ends that.
#pragma once

#include <weft/blocking/external_event.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION engine& home_of(const strand& s) noexcept { return s.executor->home(); }

WEFT_FUNCTION closure& begin_external(strand& s) {
  static constexpr descriptor external{};
  if (!s.pending()) open_frame(s);
  auto* const c = ::new (s.closures.allocate(sizeof(closure))) closure(external);
  c->state.store(closure_state::stolen, base::memory_order_relaxed);  // published by link
  link(*s.top, *c);
  ++s.live;
  return *c;
}

WEFT_FUNCTION awaited_event& awaited_event::begin(strand& s) {
  if (!s.pending()) open_frame(s);
  auto* const c = ::new (s.closures.allocate(sizeof(awaited_event))) awaited_event;
  c->state.store(closure_state::stolen, base::memory_order_relaxed);  // published by link
  link(*s.top, *c);
  ++s.live;
  return *c;
}

WEFT_FUNCTION void end_external(engine& e, strand& s, closure& c, std::exception_ptr failure) noexcept {
  // The engine must not close while the strand is handed back: as in raise_signal.
  e.visitors.fetch_add(1, base::memory_order_relaxed);  // before the exchange, which releases
  const bool failed = failure != nullptr;
  if (failed) c.set_failure(std::move(failure));
  // Release publishes what the event stands for; acquire takes over a waiting strand.
  const closure_state before =
      c.state.exchange(failed ? closure_state::failed : closure_state::done, base::memory_order_acq_rel);
  strand* waiter = before == closure_state::awaited ? &s : nullptr;
  if (before == closure_state::noted) {
    waiter = worker::finish_noted(s, c);
    e.tell_sleepers();  // others may wait for it in the graph, and the caller looks for no work
  }
  if (waiter != nullptr) {
    worker::take_from_waiting(*waiter);
    e.submit(*waiter);
  }
  e.visitors.fetch_sub(1, base::memory_order_release);  // pairs with close
}

WEFT_FUNCTION void trace_transfer(engine& e, std::uint64_t began, const char* kind,
                                  std::uint64_t bytes) noexcept {
  if (e.trace != nullptr) e.trace->add_transfer(began, kind, bytes);
}

}  // namespace weft::inline WEFT_ABI::sched
