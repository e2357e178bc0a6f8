// SPDX-License-Identifier: BSL-1.0
// Tasks that end after their body, when an event outside the runtime has happened.
#pragma once

#include <weft/base/error.hpp>
#include <weft/blocking/definitions.hpp>
#include <weft/blocking/external_event.hpp>
#include <weft/task/run_state.hpp>

#include <utility>

namespace weft::inline WEFT_ABI {

/// Keeps a task unfinished until it is completed, from any thread: dependent tasks, sync and run wait for it,
/// but no worker is blocked. Destroying a completion completes its task. *Thread safety*: one thread at a
/// time. *Example*: `auto done = weft::this_task::hold(); start_reading(file, buffer, [d = std::move(done)]()
/// mutable { d.complete(); });`
class completion {
 public:
  /// Takes over the task of `other`.
  completion(completion&& other) noexcept
      : engine_(other.engine_),
        strand_(other.strand_),
        run_(other.run_),
        closure_(std::exchange(other.closure_, nullptr)) {}
  /// Completes the task held so far, and takes over that of `other`.
  completion& operator=(completion&& other) noexcept {
    if (this != &other) {
      complete();
      engine_ = other.engine_;
      strand_ = other.strand_;
      run_ = other.run_;
      closure_ = std::exchange(other.closure_, nullptr);
    }
    return *this;
  }
  ~completion() { complete(); }

  /// Completes the task. Does nothing if it was completed or failed before.
  void complete() noexcept { end_(nullptr); }
  /// Completes the task with an exception, as if its body had thrown it.
  /// *Requires*: not null.
  void fail(std::exception_ptr e) noexcept { end_(std::move(e)); }
  /// Whether the task's run was stopped: then nobody needs what has not begun yet.
  /// *Requires*: it was neither completed nor failed.
  bool stopped() const noexcept {
    return run_->stopped.load(base::memory_order_acquire);  // pairs with stop()
  }

 private:
  friend struct held_task;
  completion(sched::engine& e, sched::strand& s, sched::closure& c) noexcept
      : engine_(&e), strand_(&s), run_(s.run.load(base::memory_order_relaxed)), closure_(&c) {}
  void end_(std::exception_ptr e) noexcept {
#if WEFT_RACES
    sched::races::event_happened();
#endif
    if (sched::closure* const c = std::exchange(closure_, nullptr))
      sched::end_external(*engine_, *strand_, *c, std::move(e));
  }

  sched::engine* engine_;
  sched::strand* strand_;
  const sched::run_state* run_;  // constant while the strand executes a task
  sched::closure* closure_;
};

/// Opens completion for this_task, and for who tells what is done for the task meanwhile.
struct held_task {
  /// See this_task::hold.
  static completion hold() {
    [[maybe_unused]] const sched::races::unseen library;
    sched::strand& s = sched::current();
    if (is_outside(s)) sched::fail_outside("this_task::hold() was called outside a task");
    const sched::closure* const c =
        s.floor->current.load(base::memory_order_relaxed);  // the owner's own store
    // Where tasks run apart, or are recorded, the closure here is that of the run.
    if (!WEFT_RACES && s.recorder == nullptr && (c == nullptr || !c->what->options(*c).event))
      base::fail("this_task::hold() needs a task that was forked with the option event");
    return completion(sched::home_of(s), s, sched::begin_external(s));
  }
  /// Puts a transfer for a task into the trace of its runtime, if there is one.
  /// *Requires*: the task has not ended.
  static void trace_transfer(const completion& c, std::uint64_t began, const char* kind,
                             std::uint64_t bytes) noexcept {
    if (c.closure_ != nullptr) sched::trace_transfer(*c.engine_, began, kind, bytes);
  }
};

namespace this_task {

/// Keeps the running task open until the completion is completed.
/// *Requires*: the task was forked with the option `event`.
/// *Throws*: std::bad_alloc.
/// *Suspends*: no.
/// *Cost*: that of a deferred fork.
inline completion hold() { return held_task::hold(); }

}  // namespace this_task
}  // namespace weft::inline WEFT_ABI
