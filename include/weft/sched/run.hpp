// SPDX-License-Identifier: BSL-1.0
// One run from the caller's side: acquire what it needs, submit the root closure, wait, rethrow.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// A call of run. The constructor acquires all that could fail, so that a run that has started can always
/// end. A task that calls it waits with its context; any other thread blocks.
class run_call {
 public:
  /// *Throws*: std::bad_alloc, std::system_error; nothing is left behind.
  explicit run_call(engine& e) : engine_(e), caller_(current()) {
    check_one_copy(caller_);
    if (!is_outside(caller_)) check_nothing_held(caller_, &current_task_name, "calls run()");
    if (!is_outside(caller_)) meanwhile_ = &caller_.executor->home().contexts.take();
    try {
      strand_ = &e.take_strand();
    } catch (...) {
      give_back();
      throw;
    }
  }
  run_call(const run_call&) = delete;
  run_call& operator=(const run_call&) = delete;
  ~run_call() { give_back(); }

  /// Where the root closure is to be made.
  arena& memory() noexcept { return strand_->closures; }

  /// Executes the closure made in memory() and waits for everything below it.
  /// *Throws*: what leaves the root; weft::cancelled.
  void execute(closure& root, const std::stop_token& stop) {
    strand& s = *std::exchange(strand_, nullptr);
    s.victim = nullptr;
    s.at_end = &end;
    s.root.current.store(&root, base::memory_order_relaxed);  // published by submit
    engine::join_run(s, run_);
    {
      const std::stop_callback drop_the_rest(run_.source.get_token(), [this] { engine_.stop(run_); });
      const std::stop_callback pass_on(stop, [this] { run_.source.request_stop(); });
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
    if (run_.error) std::rethrow_exception(*run_.error);
    if (run_.stopped.load(base::memory_order_relaxed)) throw cancelled();  // the run is over; nobody races
  }

 private:
  /// The root's strand has ended. *Returns*: the signal for which the caller waits.
  static signal* end(strand& s) noexcept {
    run_state& run = *s.run.load(base::memory_order_relaxed);  // constant since begin
    run.error = std::exchange(s.thrown, std::nullopt);
    return &run.finished;
  }
  void give_back() noexcept {
    if (meanwhile_ != nullptr) caller_.executor->home().contexts.put(*meanwhile_);
    if (strand_ == nullptr) return;
    strand_->closures.release_to(arena_mark{});
    engine_.put_strand(*strand_);
  }

  engine& engine_;
  strand& caller_;
  run_state run_;
  strand* strand_ = nullptr;
  context_slot* meanwhile_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
