// SPDX-License-Identifier: BSL-1.0
// A body with a strand of its own, which the frame of the body around it waits for.
#pragma once

#include <weft/sched/fork.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

class engine;

/// A call of spawn. The constructor acquires a strand, in whose memory the caller makes the closure of the
/// body; start() lets it run.
class spawn_call {
 public:
  /// *Throws*: std::bad_alloc; nothing is left behind.
  explicit spawn_call(strand& around);
  spawn_call(const spawn_call&) = delete;
  spawn_call& operator=(const spawn_call&) = delete;
  ~spawn_call();

  /// Where the closure is to be made.
  arena& memory() noexcept { return strand_->closures; }
  /// Submits the strand. The task around it, its sync() and the run end after it; its exception counts as
  /// that of a task forked here. If it fails, all other waits of bodies of the run end, too: what they wait
  /// for may never come. *Throws*: std::bad_alloc; then the closure is not started.
  void start(closure& body);

 private:
  struct place;
  static signal* end_(strand& s) noexcept;

  strand& around_;
  engine& engine_;
  strand* strand_;
};

}  // namespace weft::inline WEFT_ABI::sched
