// SPDX-License-Identifier: BSL-1.0
// Fibonacci without any cut-off: what is computed, how large, and how the tasks are counted.
#pragma once

#include "rival.hpp"

namespace weft_bench {

static const char* const kernel_name = "fib";
static const char* const task_name = "task";
static const char* const reference_name = "serial";

/// fork_join: fork fib(n-1), call fib(n-2), wait, add. data_flow: fib(n-1, write a), fib(n-2, write b),
/// sum(read a, read b, write r), ordered by nothing but their accesses. fork_join_ref: fork_join whose child
/// stores its result in a variable of its parent, where a rival leaves that choice.
enum form { fork_join, fork_join_ref, data_flow };

struct problem {
  const char* name;
  int n;
  form style;
  bool for_slow_rivals;  ///< small enough for runtimes that need a microsecond and more per task
  int repetitions;
};

static const problem problems[] = {
    {"fork-join-30", 30, fork_join, true, 5},          {"fork-join-38", 38, fork_join, false, 5},
    {"fork-join-ref-38", 38, fork_join_ref, false, 5}, {"data-flow-30", 30, data_flow, true, 5},
    {"data-flow-38", 38, data_flow, false, 5},         {"data-flow-42", 42, data_flow, false, 3},
};

inline long fib_value(int n) {
  long a = 0;
  long b = 1;
  for (int i = 0; i < n; ++i) {
    const long next = a + b;
    a = b;
    b = next;
  }
  return a;
}

/// Calls that fib(n) makes, itself included.
inline long calls(int n) { return 2 * fib_value(n + 1) - 1; }

inline bool is_fork_join(const problem& p) { return p.style != data_flow; }

/// Fork-join: every call is counted, as in the literature. data_flow: fib tasks, and a sum for each call with
/// n >= 2.
inline long tasks(const problem& p) {
  return is_fork_join(p) ? calls(p.n) : calls(p.n) + (calls(p.n) - 1) / 2;
}

static const int warm_up_n = 20;

}  // namespace weft_bench
