// SPDX-License-Identifier: BSL-1.0
// External events: closures that nobody runs, and that some thread ends.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Appends a closure to the running body's frame that counts as stolen, by the outside world: the body's task
/// has not ended before end_external(). *Throws*: std::bad_alloc.
inline closure& begin_external(strand& s) {
  static constexpr task_options defaults{};
  static constexpr descriptor external{
      nullptr, nullptr, nullptr, 0, [](const closure&) noexcept -> const task_options& { return defaults; }};
  if (!s.pending()) open_frame(s);
  auto* const c = ::new (s.closures.allocate(sizeof(closure))) closure(external);
  c->state.store(closure_state::stolen, base::memory_order_relaxed);  // published by link
  link(*s.top, *c);
  ++s.live;
  return *c;
}

/// A closure as by begin_external, and an object: itself. Tasks of the same frame that read that wait for the
/// end.
class awaited_event final : public closure {
 public:
  /// Appends one to the running body's frame. *Throws*: std::bad_alloc.
  static awaited_event& begin(strand& s) {
    if (!s.pending()) open_frame(s);
    auto* const c = ::new (s.closures.allocate(sizeof(awaited_event))) awaited_event;
    c->state.store(closure_state::stolen, base::memory_order_relaxed);  // published by link
    link(*s.top, *c);
    ++s.live;
    return *c;
  }
  const void* object() const noexcept { return this; }

 private:
  awaited_event() noexcept : closure(what_), self_(this) {
    static_assert(sizeof(awaited_event) == sizeof(closure) + sizeof(void*), "objects() finds it there");
  }
  static constexpr task_options defaults_{};
  static constexpr access_mode modes_[] = {access_mode::update};
  static constexpr descriptor what_{nullptr, nullptr, modes_, 1,
                                    [](const closure&) noexcept -> const task_options& { return defaults_; }};
  [[maybe_unused]] void* self_;
};

/// Ends either, once, from any thread. *Requires*: the strand has not changed since it began; `e` is its
/// engine.
inline void end_external(engine& e, strand& s, closure& c, std::exception_ptr failure) noexcept {
  // The engine must not close while the strand is handed back: as in raise_signal.
  e.visitors.fetch_add(1, base::memory_order_relaxed);  // before the exchange, which releases
  const bool failed = failure != nullptr;
  if (failed) c.set_failure(std::move(failure));
  // Release publishes what the event stands for; acquire takes over a waiting strand.
  const closure_state before =
      c.state.exchange(failed ? closure_state::failed : closure_state::done, base::memory_order_acq_rel);
  strand* waiter = before == closure_state::awaited ? &s : nullptr;
  if (before == closure_state::noted) waiter = worker::finish_noted(s, c);
  if (waiter != nullptr) {
    worker::take_from_waiting(*waiter);
    e.submit(*waiter);
  }
  e.visitors.fetch_sub(1, base::memory_order_release);  // pairs with close
}

}  // namespace weft::inline WEFT_ABI::sched
