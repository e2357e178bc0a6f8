// SPDX-License-Identifier: BSL-1.0
// Several strands that do one task's work together, as many as there are workers who have nothing else to do.
#pragma once

#include <weft/sched/sync.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Strands that call one function, besides the task that needs it done (the founder), which calls it too.
/// What there is to do, the function finds out; it returns when there is nothing at the moment. A strand is
/// sent for by call(); it begins when a worker has nothing better to do, or when another member's body waits.
///
/// Who may touch it when:
///  1. The founder makes it, and returns from wait() before it ends.
///  2. `members_` is changed by anybody; whoever brings it to zero sets `all_left_`, and touches nothing
///  more.
class helper_team {
 public:
  using function = void (*)(void* of) noexcept;

  /// *Requires*: called in a task; `options` live as long. `what` says to people what is waited for.
  /// *Throws*: std::bad_alloc, std::system_error.
  helper_team(strand& founder, function work, void* of, const task_options& options, const char* what);
  helper_team(const helper_team&) = delete;
  helper_team& operator=(const helper_team&) = delete;
  ~helper_team();

  /// Sends for one more. *Returns*: whether one will come; there may be no memory for it. *Requires*: called
  /// by the founder or a member.
  bool call() noexcept;

  /// Waits until all have left, to which the founder belongs. *Suspends*: yes.
  void wait() noexcept;

 private:
  struct switch_action;
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
