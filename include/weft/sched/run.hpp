// SPDX-License-Identifier: BSL-1.0
// One run from the caller's side: acquire what it needs, submit the root closure, wait, rethrow.
#pragma once

#include <weft/sched/sync.hpp>
#include <weft/task/run_state.hpp>

namespace weft::inline WEFT_ABI::sched {

/// A call of run. The constructor acquires all that could fail, so that a run that has started can always
/// end. A task that calls it waits with its context; any other thread blocks.
class run_call {
 public:
  /// `workers`: so many at most may work on it at once, and no more than on the run around it; 0: all.
  /// *Throws*: std::bad_alloc, std::system_error; nothing is left behind.
  explicit run_call(engine& e, unsigned workers = 0);
  run_call(const run_call&) = delete;
  run_call& operator=(const run_call&) = delete;
  ~run_call();

  /// Where the root closure is to be made.
  arena& memory() noexcept { return strand_->closures; }

  /// Executes the closure made in memory() and waits for everything below it. With `record`, serially, and
  /// that is told of each task.
  /// *Throws*: what leaves the root; weft::cancelled.
  void execute(closure& root, const std::stop_token& stop, run_recorder* record = nullptr);

 private:
  static signal* end_(strand& s) noexcept;
  void limit_(unsigned workers);
  void give_back_() noexcept;

  engine& engine_;
  strand& caller_;
  run_state run_;
  strand* strand_ = nullptr;
  worker_share* share_ = nullptr;  ///< that has begun for this run
  context_slot* meanwhile_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
