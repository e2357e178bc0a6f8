// SPDX-License-Identifier: BSL-1.0
// How a helper team gets its strands, and how its founder waits for them.
#pragma once

#include <weft/blocking/helper_team.hpp>
#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What a helper's strand executes.
struct helper_team::helper_task final : closure {
  explicit helper_task(helper_team& c) noexcept : closure(what), of(c) {}
  static void run(closure& c) {
    const helper_team& whole = static_cast<helper_task&>(c).of;
    whole.work_(whole.of_);
  }
  static const task_options& options_of(const closure& c) noexcept {
    return static_cast<const helper_task&>(c).of.options_;
  }
  static constexpr descriptor what{.run = &run, .drop = [](closure&) noexcept {}, .options = &options_of};

  helper_team& of;
};

WEFT_FUNCTION helper_team::helper_team(strand& founder, function work, void* of, const task_options& options,
                                       const char* what)
    : founder_(founder),
      engine_(founder.executor->home()),
      work_(work),
      of_(of),
      options_(options),
      meanwhile_(&engine_.contexts.take()) {
  all_left_.waiter = &founder;
  all_left_.home = &engine_;
  all_left_.what = what;
}

WEFT_FUNCTION helper_team::~helper_team() {
  if (meanwhile_ != nullptr) engine_.contexts.put(*meanwhile_);
}

WEFT_FUNCTION bool helper_team::add_helper() noexcept {
  strand* s = nullptr;
  try {
    s = &engine_.take_strand();
    s->root.current.store(::new (s->closures.allocate(sizeof(helper_task))) helper_task(*this),
                          base::memory_order_relaxed);  // published by submit
  } catch (const std::bad_alloc&) {
    if (s != nullptr) engine_.put_strand(*s);
    return false;
  }
  s->victim = nullptr;
  s->priority = founder_.priority;
  s->at_end = &leave_;
  s->end_of = this;
  members_.fetch_add(1, base::memory_order_relaxed);  // the caller is counted, so it is not zero
  engine::join_run(*s, *founder_.run.load(base::memory_order_relaxed));  // constant while the task runs
  engine_.submit(*s);
  return true;
}

WEFT_FUNCTION void helper_team::wait() noexcept {
  // Acquire pairs with leave_.
  if (members_.fetch_sub(1, base::memory_order_acq_rel) != 1)
    founder_.executor->await_signal(founder_, all_left_, *std::exchange(meanwhile_, nullptr));
}

/// A member has ended. *Returns*: the signal to be set, if it was the last.
WEFT_FUNCTION signal* helper_team::leave_(strand& s) noexcept {
  helper_team& c = *static_cast<helper_team*>(s.end_of);
  s.thrown.reset();  // only cancellation, which the founder sees, too
  // Release publishes what the member did to the founder; acquire lets the last one pass that on.
  return c.members_.fetch_sub(1, base::memory_order_acq_rel) == 1 ? &c.all_left_ : nullptr;
}

}  // namespace weft::inline WEFT_ABI::sched
