// SPDX-License-Identifier: BSL-1.0
// A thief outside the engine: takes ready closures that are executed elsewhere, and brings back how they
// ended.
#pragma once

#include <weft/task/run_state.hpp>
#include <weft/task/strand.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

namespace weft::inline WEFT_ABI::sched {

class engine;
/// What takes threads to other processes: the room cluster has one for each engine.
struct thread_carrier;

/// That of the engine which executes the strand; null: it has none.
thread_carrier* carrier_of(const strand& s) noexcept;

/// A closure that begins a strand of its own, and is told when all below it has ended.
struct outside_task {
  closure* root;
  /// Called once, by a worker, with what has left the closure; null: it has ended well.
  void (*ended)(outside_task& self, std::exception_ptr thrown) noexcept;
};

/// The hand of a thief that is no thread of the engine. What it has taken counts as executed until end():
/// tasks that depend on it wait, and so do sync and run. *Thread safety*: one thread at a time, which
/// executes no task of any engine.
class outside_thief {
 public:
  /// From now on owners keep something to take. `may_take`: what the thief has use for; it is asked under
  /// locks. *Requires*: no run is going on; one object for each engine. *Throws*: std::bad_alloc,
  /// weft::error.
  outside_thief(engine& from, thief_filter may_take);
  outside_thief(const outside_thief&) = delete;
  outside_thief& operator=(const outside_thief&) = delete;
  ~outside_thief();

  /// Takes one ready closure, the oldest it finds. If that is in a small frame, it takes others of the frame
  /// in the same visit, until so many are `wanted`, or as many are taken as are left; next_taken() returns
  /// those. *Requires*: that has returned all of the last time. *Returns*: the strand that stands for it, or
  /// null.
  strand* steal(std::size_t wanted = 1) noexcept;
  /// The same of one, but only of these.
  strand* steal(thief_filter may_take) noexcept;
  /// The next of the others, in the order of their forks. *Returns*: null: there are no more.
  strand* next_taken() noexcept;
  /// Takes another ready closure from the large frame from which one was taken, if more of them are ready
  /// there than `taken`. *Requires*: that one has not ended. *Returns*: as steal; null if the frame is not
  /// large, or somebody else is at it.
  strand* steal_beside(const strand& s, std::size_t taken) noexcept;
  /// The closure that was taken.
  static closure& task_of(const strand& s) noexcept;
  /// Lets a worker execute it after all.
  void give_back(strand& s) noexcept;
  /// It has ended. *Requires*: its arguments are destroyed, as run and drop of its descriptor do.
  void end(strand& s, std::exception_ptr thrown) noexcept;

  /// Whether the run to which a strand belongs was stopped. *Requires*: it has not ended.
  static bool stopped(const strand& s) noexcept;
  /// The unit in which that run began; null: none. *Requires*: the same.
  static kept_unit* unit_of_run(const strand& s) noexcept;
  /// Stops that run, as one of its bodies might.
  static void request_stop(strand& s) noexcept;
  /// Stops a run for which execute() was called: what has not started is dropped. *Thread safety*: any
  /// thread.
  void stop(run_state& run) noexcept;

  /// How often it has entered a strand.
  std::uint64_t visits() const noexcept;
  /// How many workers the engine has.
  unsigned workers() const noexcept;
  /// Whether a worker of the engine has nothing to do, as a hint.
  bool workers_idle() const noexcept;
  /// Threads of the engine that want to go to other processes find this from now on, as long as this object
  /// lives. *Requires*: no run is going on.
  void carry_threads_by(thread_carrier& c) noexcept;
  /// Has a closure executed by the engine, as the root of a strand that belongs to `run`. *Returns*: that; it
  /// may have ended. *Throws*: std::bad_alloc; then nothing has happened.
  strand& execute(outside_task& task, run_state& run);
  /// Takes such a strand back before a worker has begun to execute it. *Requires*: it has not ended.
  /// *Returns*: false if one has. Otherwise `task.ended` is not called, and the root still has its arguments.
  bool withdraw(strand& s) noexcept;
  /// Whether it has a worker or waits for its first one, as a hint; otherwise its body waits. *Requires*: it
  /// has not ended.
  static bool occupies_worker(const strand& s) noexcept;

 private:
  void pass_on(strand& s) noexcept;

  engine& engine_;
  std::unique_ptr<worker> hand_;
};

}  // namespace weft::inline WEFT_ABI::sched
