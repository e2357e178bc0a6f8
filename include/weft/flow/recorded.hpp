// SPDX-License-Identifier: BSL-1.0
// recorded: a graph of tasks that a program repeats and whose dependences are computed once.
#pragma once

#include <weft/flow/fork.hpp>
#include <weft/flow/shared.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/recorded_scope.hpp>

#include <utility>

namespace weft::inline WEFT_ABI {

/// Records the task graph that a function forks. Each call executes the function, so arguments other than
/// rights may differ; from the second call on, the runtime takes the dependences from the record. There is no
/// barrier between calls: a task waits only for the tasks of earlier calls with which it conflicts. The
/// record lives as a weft::shared object does: if made in a task, until that task and all its descendants
/// have ended.
/// *Example*:
/// @code
/// weft::recorded step;
/// for (int i = 0; i < n; ++i) step([&] { weft::fork(f, weft::update(x), i); });
/// @endcode
/// *Source*: taskgraph of OpenMP 6; Yu, Royuela and Quinones, "Taskgraph: a low contention OpenMP tasking
/// framework" (2023).
class recorded {
 public:
  /// An empty record.
  /// *Throws*: std::bad_alloc.
  recorded() = default;

  /// Executes `f`, which forks the graph.
  /// *Requires*: called in a task. `f` forks the same graph each time: the same functions with rights on the
  /// same objects, in the same order; so no results of tasks and no objects that it makes itself. (Otherwise
  /// the tasks are right, and slower; checked builds stop the program.)
  /// *Effects*: those of `f()`. The first call records. Contributions and tasks that commute are ordered like
  /// updates in later ones. Within a call for another graph, it is only a call.
  /// *Throws*: what `f` throws; then nothing is remembered of that call.
  /// *Suspends*: if `f` does.
  /// *Cost*: the first call some hundred nanoseconds for each task.
  /// *Thread safety*: tasks may call it at the same time; one of them records.
  template <class F>
  void operator()(F&& f) {
#if WEFT_RACES
    return static_cast<void>(std::forward<F>(f)());  // nothing to remember: nothing waits
#endif
    sched::recorded_scope scope(sched::current(), *flow::key::address(record_));
    std::forward<F>(f)();
    scope.end();
  }

 private:
  shared<sched::record_owner> record_;
};

}  // namespace weft::inline WEFT_ABI
