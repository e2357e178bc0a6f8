// SPDX-License-Identifier: BSL-1.0
// How a run is submitted, and how its caller waits.
#pragma once

#include <weft/sched/detail/worker_loop.hpp>
#include <weft/sched/run.hpp>
#include <weft/task/task_keeper.hpp>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION run_call::run_call(engine& e, unsigned workers) : engine_(e), caller_(current()) {
  check_one_copy(caller_);
  check_may_block(caller_, "calls run()");
  if (!is_outside(caller_)) check_nothing_held(caller_, &current_task_name, "calls run()");
  if (!is_outside(caller_)) meanwhile_ = &caller_.executor->home().contexts.take();
  engine_.active_runs.fetch_add(1, base::memory_order_relaxed);
  try {
    strand_ = &e.take_strand();
    limit_(workers);
  } catch (...) {
    give_back_();
    throw;
  }
}

/// A run within another one of the same engine has at most the workers of that.
WEFT_FUNCTION void run_call::limit_(unsigned workers) {
  const bool nested = !is_outside(caller_) && &caller_.executor->home() == &engine_;
  worker_share* const outer = nested ? caller_.share.load(base::memory_order_relaxed) : nullptr;
  run_.share = outer;
  if (workers != 0 && workers < workers_of(outer, engine_.options.workers))
    run_.share = share_ = &engine_.take_share(workers, outer);
}

WEFT_FUNCTION run_call::~run_call() { give_back_(); }

WEFT_FUNCTION void run_call::execute(closure& root, const std::stop_token& stop, run_recorder* record) {
  strand& s = *std::exchange(strand_, nullptr);
  s.victim = nullptr;
  s.priority = 0;
  s.at_end = &end_;
  s.recorder = record;
  run_.observed = engine_.trace != nullptr || record != nullptr;
  s.root.current.store(&root, base::memory_order_relaxed);  // published by submit
  // A run inside a task belongs to that.
  if (!run_.observed) run_.unit = is_outside(caller_) ? engine_.unit : caller_.unit;
  engine::join_run(s, run_);
  if (run_.unit != nullptr) enter_unit(s, run_.unit);
  base::probe::run_begin(&engine_, &run_);
  {
    const std::stop_callback drop_the_rest(run_.source.get_token(), [this] { engine_.stop(run_); });
    const std::stop_callback pass_on(stop, [this] {
      engine_.stop(run_);  // first: who sees the token stopped forks nothing that starts
      run_.source.request_stop();
    });
    if (meanwhile_ == nullptr) {
      engine_.submit(s);
      run_.finished.block();
    } else {
      run_.finished.waiter = &caller_;
      run_.finished.home = &caller_.executor->home();
      engine_.submit(s);
      caller_.executor->await_signal(caller_, run_.finished, *std::exchange(meanwhile_, nullptr));
    }
  }
  base::probe::run_end(&engine_, &run_, run_.error.has_value());
  if (run_.error) std::rethrow_exception(*run_.error);
  if (run_.stopped.load(base::memory_order_relaxed)) throw cancelled();  // the run is over; nobody races
}

/// The root's strand has ended. *Returns*: the signal for which the caller waits.
WEFT_FUNCTION signal* run_call::end_(strand& s) noexcept {
  run_state& run = *s.run.load(base::memory_order_relaxed);  // constant since begin
  s.recorder = nullptr;
  run.error = std::exchange(s.thrown, std::nullopt);
  return &run.finished;
}

WEFT_FUNCTION void run_call::give_back_() noexcept {
  engine_.active_runs.fetch_sub(1, base::memory_order_relaxed);
  if (share_ != nullptr) share_->end();
  if (meanwhile_ != nullptr) caller_.executor->home().contexts.put(*meanwhile_);
  if (strand_ == nullptr) return;
  strand_->closures.release_to(arena_mark{});
  engine_.put_strand(*strand_);
}

}  // namespace weft::inline WEFT_ABI::sched
