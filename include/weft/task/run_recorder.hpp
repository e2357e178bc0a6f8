// SPDX-License-Identifier: BSL-1.0
// Who is told of the tasks of a run that is executed serially, in reference order.
#pragma once

#include <weft/task/access.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What a task of a recorded run does with an access.
enum class recorded_use : std::uint8_t {
  own,        ///< waits for earlier tasks, and is waited for
  weak,       ///< only its children use it, so it need not wait itself
  waits_only  ///< waits for earlier tasks, and nobody for it
};

/// Is told what happens in one run, by the thread that executes it. Each body ends before the one around it
/// goes on. What a function throws ends the run, as if the task had thrown it. A function that must not throw
/// keeps its failure for the next one that may, at the latest for end_run.
class run_recorder {
 public:
  run_recorder() = default;
  run_recorder(const run_recorder&) = delete;
  run_recorder& operator=(const run_recorder&) = delete;

  /// The first body of the run begins; the record of an earlier run is forgotten.
  virtual void begin_run() = 0;
  /// The running body forks a task.
  virtual void begin_task(const char* name) = 0;
  /// It has this access.
  virtual void add_access(const access& a, recorded_use use) = 0;
  /// That was all; its body begins.
  virtual void begin_body() = 0;
  /// All that, for a task whose only access is to its result, if it has one, else null. Nobody has had an
  /// access to that before.
  virtual void begin_plain_body(const char* name, const void* result) {
    begin_task(name);
    if (result != nullptr) add_access({.object = result, .mode = access_mode::write}, recorded_use::own);
    begin_body();
  }
  /// The body has ended, with all below it.
  virtual void end_body() noexcept = 0;
  /// The handle of an object of the running body has ended: another object may have its address soon. All
  /// tasks with a right to it have ended.
  virtual void end_object(const void* object) noexcept = 0;
  /// The running body waits for its children.
  virtual void sync() noexcept = 0;
  /// The first body of the run has ended, with all below it. What this throws is what the run throws, unless
  /// its tasks have thrown already.
  virtual void end_run() = 0;

 protected:
  ~run_recorder() = default;
};

}  // namespace weft::inline WEFT_ABI::sched
