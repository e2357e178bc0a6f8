// SPDX-License-Identifier: BSL-1.0
// Several strands that do one task's work together, as many as there are workers who have nothing else to do.
#pragma once

#include <weft/sched/sync.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Strands that execute one function in parallel with the task that needs its result (the founder), which
/// executes it too. The function looks for work itself, and returns when it finds none. A strand that
/// add_helper() submits starts when a worker is idle, or when the body of another member waits.
///
/// Who may touch it when:
///  1. The founder makes it, and returns from wait() before it ends.
///  2. `members_` is changed by anybody; whoever brings it to zero sets `all_left_`, and touches nothing
///  more.
class helper_team {
 public:
  using function = void (*)(void* of) noexcept;

  /// *Requires*: called in a task; `options` live as long. `what`: names the team in reports.
  /// *Throws*: std::bad_alloc, std::system_error.
  helper_team(strand& founder, function work, void* of, const task_options& options, const char* what);
  helper_team(const helper_team&) = delete;
  helper_team& operator=(const helper_team&) = delete;
  ~helper_team();

  /// Submits one more helper.
  /// *Returns*: false if there is no memory for it.
  /// *Requires*: called by the founder or a member.
  bool add_helper() noexcept;

  /// Leaves the team, and waits until all others have left.
  /// *Suspends*: yes.
  void wait() noexcept;

 private:
  struct helper_task;
  static signal* leave_(strand& s) noexcept;

  strand& founder_;
  engine& engine_;
  function work_;
  void* of_;
  const task_options& options_;
  context_slot* meanwhile_;
  base::atomic<std::uint32_t> members_{1};
  signal all_left_;
};

}  // namespace weft::inline WEFT_ABI::sched
