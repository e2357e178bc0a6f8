// SPDX-License-Identifier: BSL-1.0
// How a spawned body gets its strand, and how its end is told.
#pragma once

#include <weft/blocking/external_event.hpp>
#include <weft/blocking/spawn.hpp>
#include <weft/blocking/wait.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What stands in the frame around a spawned body: a closure that its end ends.
struct spawn_call::place final : closure {
  explicit place(strand& s) noexcept : closure(what_), around(s) {}

  strand& around;

 private:
  static constexpr descriptor what_{};
};

WEFT_FUNCTION spawn_call::spawn_call(strand& around, std::size_t stack_size)
    : around_(around), engine_(around.executor->home()), strand_(&engine_.take_bare_strand()) {
  try {
    if (stack_size != 0) strand_->suspended = &engine_.contexts.take(stack_size);
    if (!around.pending()) open_frame(around);
    place_ = ::new (around.closures.allocate(sizeof(place))) place(around);
  } catch (...) {
    give_back_();
    throw;
  }
}

WEFT_FUNCTION spawn_call::~spawn_call() {
  if (strand_ != nullptr) give_back_();
}

WEFT_FUNCTION void spawn_call::give_back_() noexcept {
  if (context_slot* const stack = std::exchange(strand_->suspended, nullptr)) engine_.contexts.put(*stack);
  engine_.put_strand(*strand_);
}

WEFT_FUNCTION void spawn_call::start(closure& body) noexcept {
  place* const p = place_;
  p->state.store(closure_state::stolen, base::memory_order_relaxed);  // published by link
  link(*around_.top, *p);
  ++around_.live;
  strand& s = *std::exchange(strand_, nullptr);
  s.root.current.store(&body, base::memory_order_relaxed);  // published by submit
  s.victim = nullptr;
  s.at_end = &end_;
  s.end_of = p;
  const int own = body.what->options(body).priority;
  s.priority = own != 0 ? own : inherited_priority(around_, *around_.top);
  engine::join_run(s, *around_.run.load(base::memory_order_relaxed));  // constant while the task runs
  engine_.submit(s);
}

/// A spawned body has ended, with all below it.
WEFT_FUNCTION signal* spawn_call::end_(strand& s) noexcept {
  place& p = *static_cast<place*>(s.end_of);
  engine& home = s.executor->home();
  std::exception_ptr failure;
  if (s.thrown) {
    failure = *std::exchange(s.thrown, std::nullopt);
    end_waits_of_run(s);
  }
  // `p` may be gone as soon as it has ended.
  end_external(home, p.around, p, std::move(failure));
  return nullptr;
}

}  // namespace weft::inline WEFT_ABI::sched
