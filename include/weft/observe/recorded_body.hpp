// SPDX-License-Identifier: BSL-1.0
// The beginning and the end of a body in the record of its run.
#pragma once

#include <weft/base/error.hpp>
#include <weft/task/run_recorder.hpp>
#include <weft/task/strand.hpp>

#include <type_traits>

namespace weft::inline WEFT_ABI::observe {

/// A task that runs inside fork in a recorded run. It is told its accesses between constructor and begin().
class recorded_body {
 public:
  /// *Throws*: weft::error if the run cannot be followed any further; what the recorder throws.
  recorded_body(sched::strand& s, const char* name) : recorder_(*s.recorder) {
    check_(s);
    recorder_.begin_task(name);
  }
  /// The same. A plain task has no access but to its result, if that is not null, and has begun then.
  template <bool Plain>
  recorded_body(sched::strand& s, const char* name, std::bool_constant<Plain>,
                [[maybe_unused]] const void* result)
      : recorder_(*s.recorder) {
    check_(s);
    if constexpr (Plain)
      recorder_.begin_plain_body(name, result);
    else
      recorder_.begin_task(name);
  }
  recorded_body(const recorded_body&) = delete;
  recorded_body& operator=(const recorded_body&) = delete;
  ~recorded_body() { recorder_.end_body(); }

  void add(const sched::access& a, sched::recorded_use use = sched::recorded_use::own) {
    recorder_.add_access(a, use);
  }
  void begin() { recorder_.begin_body(); }

 private:
  static void check_(sched::strand& s) {
    // Acquire pairs with end_.
    if (context::stack_pointer() <= s.stack_limit ||
        sched::inlining_disablers.load(base::memory_order_acquire) != 0) [[unlikely]]
      refuse_(context::stack_pointer() <= s.stack_limit);
  }
  [[noreturn]] WEFT_COLD static void refuse_(bool deep) {
    throw error(deep ? "weft: the tasks of a recorded run nest too deep; raise runtime_options::stack_size"
                     : "weft: a run cannot be recorded while tasks may wait for one another (ordered locks)");
  }

  sched::run_recorder& recorder_;
};

/// The first body of a recorded run. *Requires*: end() is called once, behind the body.
class recorded_root {
 public:
  /// The strand is to run all tasks inside fork, and loops are to be divided into their smallest parts.
  /// *Throws*: what the recorder throws.
  explicit recorded_root(sched::strand& s) : recorder_(*s.recorder) {
    s.surplus = 0;
    s.wanted_surplus = 1;
    s.limit = sched::no_inlining;
    recorder_.begin_run();
  }
  recorded_root(const recorded_root&) = delete;
  recorded_root& operator=(const recorded_root&) = delete;
  /// It has ended. *Throws*: what the recorder throws.
  void end() { recorder_.end_run(); }

 private:
  sched::run_recorder& recorder_;
};

}  // namespace weft::inline WEFT_ABI::observe
