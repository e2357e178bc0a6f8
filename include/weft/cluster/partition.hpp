// SPDX-License-Identifier: BSL-1.0
// A step that a program repeats, divided among the processes of a cluster.
#pragma once

#include <weft/cluster/detail/step_exchange.hpp>
#include <weft/cluster/detail/task_travel.hpp>
#include <weft/cluster/partition_options.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI {

/// The tasks that a function forks, placed on the processes of a cluster once and executed again and again.
/// Every process has the objects, with the same values at first, and makes this and calls run() like all
/// others. Each executes its tasks, and sends what they write to where it is read.
/// *Example*:
/// @code
/// weft::shared<row> a, b;  // in every process
/// weft::partitioned step(c, [&] { weft::fork(sweep, weft::read(a), weft::update(b)); });
/// step.run(1000);          // afterwards all processes have the values
/// @endcode
/// *Thread safety*: one thread at a time. *Source*: the thread partitioning of KAAPI (Gautier, Besseron,
/// Pigeon, PASCO'07, section 3.5).
class partitioned {
 public:
  /// Calls `f` once, as a task. What it forks is not executed: it is the step. *Requires*: the cluster, and
  /// what `f` refers to, live as long as this. `f` only forks; tasks fork what they like. They touch shared
  /// state only through rights on whole objects, of types that can be sent if they are written; callables and
  /// arguments can be copied, and every execution has a copy. *Throws*: in all processes what `f` throws;
  /// weft::error for a task that cannot be repeated, an object that cannot be sent, or steps that differ.
  template <class Cluster, class F>
  partitioned(Cluster& c, F&& f, const partition_options& options = {})
      : exchange_(std::make_unique<remote::step_exchange>(c.place_for_steps_(), options)) {
    exchange_->record(f);
  }

  /// Executes the step `n` times. *Effects*: those of the serial program, in every process. There is no
  /// barrier between steps, but where costs are compared: after the 1st, the 5th and the 21st, and then
  /// every 64; with checkpoints, three times from one to the next. *Throws*: in every process what the serial
  /// program throws first; then the objects have any values. weft::cancelled if a task has requested a stop;
  /// weft::error if another process was told another `n`, or a process has no memory for a long value that is
  /// sent to it; std::system_error if a checkpoint cannot be written. A process that has not answered for
  /// cluster_options::silence ends the job. *Suspends*: it blocks the calling thread, which sends and
  /// receives meanwhile. *Cost*: of an iteration some hundred nanoseconds for each task and each value that
  /// goes to another process, and what sending takes.
  void run(std::uint64_t n = 1) { exchange_->run(n); }

  /// Puts the values of the last checkpoint into the objects, in every process; of a job with any number of
  /// processes, before this one. *Requires*: partition_options::checkpoint is set. *Returns*: how many
  /// executions of the step the values have behind them; 0, and does nothing, if there is no checkpoint.
  /// *Throws*: in all processes: weft::error for a file that is no checkpoint, is damaged, or one of a step
  /// that writes other objects; std::system_error; then the objects have any values. *Example*:
  /// `step.run(1000 - step.resume());`
  std::uint64_t resume() { return exchange_->resume(); }
  /// Makes a checkpoint of the values that the objects have, and waits until it is on the device; does
  /// nothing if the last one has them. Called by all processes, between runs, for instance before the time of
  /// a batch job is over. *Requires*: partition_options::checkpoint is set. *Throws*: in all processes:
  /// weft::error if the last run has thrown; std::system_error; what packing values throws.
  void save() { exchange_->save(); }

  /// How many tasks the step has.
  std::size_t tasks() const noexcept { return exchange_->tasks(); }
  /// The process of each task, in the order of the forks; empty before the first run.
  std::vector<unsigned> placement() const {
    return exchange_->placed() ? exchange_->processor() : std::vector<unsigned>();
  }
  /// What this process has done.
  partition_counters counters() const noexcept { return exchange_->counters(); }

 private:
  std::unique_ptr<remote::step_exchange> exchange_;
};

}  // namespace weft::inline WEFT_ABI
