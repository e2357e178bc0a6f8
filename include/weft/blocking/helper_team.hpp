// SPDX-License-Identifier: BSL-1.0
// Several strands that do one task's work together, as many as there are workers who have nothing else to do.
#pragma once

#include <weft/sched/scheduler.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Strands that call one function, besides the task that needs it done (the founder), which calls it too.
/// What there is to do, the function finds out; it returns when there is nothing at the moment. A strand is
/// sent for by call(); it begins when a worker has nothing better to do, or when another member's body waits.
///
/// Who may touch it when:
///  1. The founder makes it, and returns from wait() before it ends.
///  2. `members_` is changed by anybody; whoever brings it to zero sets `all_left_`, and touches nothing
///  more.
class crew {
 public:
  using function = void (*)(void* of) noexcept;

  /// *Requires*: called in a task; `options` live as long. `what` says to people what is waited for.
  /// *Throws*: std::bad_alloc, std::system_error.
  crew(strand& founder, function work, void* of, const task_options& options, const char* what)
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
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    if (meanwhile_ != nullptr) engine_.contexts.put(*meanwhile_);
  }

  engine& home() const noexcept { return engine_; }

  /// Sends for one more. *Returns*: whether one will come; there may be no memory for it. *Requires*: called
  /// by the founder or a member.
  bool call() noexcept {
    strand* s = nullptr;
    try {
      s = &engine_.take_strand();
      s->root.current.store(::new (s->closures.allocate(sizeof(errand))) errand(*this),
                            base::memory_order_relaxed);  // published by submit
    } catch (const std::bad_alloc&) {
      if (s != nullptr) engine_.put_strand(*s);
      return false;
    }
    s->victim = nullptr;
    s->at_end = &leave;
    s->end_of = this;
    members_.fetch_add(1, base::memory_order_relaxed);  // the caller is counted, so it is not zero
    engine::join_run(*s, *founder_.run.load(base::memory_order_relaxed));  // constant while the task runs
    engine_.submit(*s);
    return true;
  }

  /// Waits until all have left, to which the founder belongs. *Suspends*: yes.
  void wait() noexcept {
    // Acquire pairs with leave.
    if (members_.fetch_sub(1, base::memory_order_acq_rel) != 1)
      founder_.executor->await_signal(founder_, all_left_, *std::exchange(meanwhile_, nullptr));
  }

  /// A member has ended. *Returns*: the signal to be set, if it was the last.
  static signal* leave(strand& s) noexcept {
    crew& c = *static_cast<crew*>(s.end_of);
    s.thrown.reset();  // only cancellation, which the founder sees, too
    // Release publishes what the member did to the founder; acquire lets the last one pass that on.
    return c.members_.fetch_sub(1, base::memory_order_acq_rel) == 1 ? &c.all_left_ : nullptr;
  }

 private:
  struct errand final : closure {
    explicit errand(crew& c) noexcept : closure(what), of(c) {}
    static void run(closure& c) {
      const crew& whole = static_cast<errand&>(c).of;
      whole.work_(whole.of_);
    }
    static const task_options& options_of(const closure& c) noexcept {
      return static_cast<const errand&>(c).of.options_;
    }
    static constexpr descriptor what{&run, [](closure&) noexcept {}, nullptr, 0, &options_of};

    crew& of;
  };

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
