// SPDX-License-Identifier: BSL-1.0
// A body with a strand of its own, which the frame of the body around it waits for.
#pragma once

#include <weft/sched/fork.hpp>
#include <weft/task/signal.hpp>

namespace weft::inline WEFT_ABI::sched {

class engine;

/// A call of spawn. The constructor acquires a strand; the caller makes the closure of the body in the memory
/// of the frame around it, and start() lets it run.
class spawn_call {
 public:
  /// `stack_size`: 0 for that of all bodies. *Throws*: std::bad_alloc, std::system_error, option_error;
  /// nothing is left behind.
  spawn_call(strand& around, std::size_t stack_size);
  spawn_call(const spawn_call&) = delete;
  spawn_call& operator=(const spawn_call&) = delete;
  ~spawn_call();

  /// Where the closure is to be made.
  arena& memory() noexcept { return around_.closures; }
  /// Submits the strand. The task around it, its sync() and the run end after it; its exception counts as
  /// that of a task forked here. If it fails, all other waits of bodies of the run end, too: what they wait
  /// for may never come.
  void start(closure& body) noexcept;

 private:
  struct place;
  void give_back_() noexcept;
  static signal* end_(strand& s) noexcept;

  strand& around_;
  engine& engine_;
  strand* strand_;
  place* place_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
