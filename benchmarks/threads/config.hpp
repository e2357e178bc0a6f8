// SPDX-License-Identifier: BSL-1.0
// Bodies that wait for each other: a mutex alone, a value that nobody waits for, two bodies that take turns,
// a bounded queue, and very many bodies at one barrier.
#pragma once

#include "rival.hpp"

#include <cstddef>

namespace weft_bench {

static const char* const kernel_name = "threads";
static const char* const task_name = "operation";
static const char* const reference_name = "std";

enum kind { lock, set, ping_pong, queue, crowd };

struct problem {
  const char* name;
  kind what;
  long long count;
  int repetitions;
};

static const problem problems[] = {
    {"lock-unlock", lock, 20000000, 5},  {"condition-set", set, 20000000, 5},
    {"ping-pong", ping_pong, 200000, 5}, {"channel-64", queue, 1000000, 5},
    {"crowd", crowd, 1000000, 1},
};

static const std::size_t capacity = 64;
/// Of each body of the crowd.
static const std::size_t stack_bytes = 64 * 1024;

inline bool is(int index, kind k) { return problems[index].what == k; }
inline bool takes_one(int index) { return is(index, lock) || is(index, set); }

/// Lets the compiler see nothing of what lies between lock and unlock.
inline void something() { asm volatile("" : : : "memory"); }

/// The sum of 0, 1, ... n - 1.
inline long long sum_below(long long n) { return n * (n - 1) / 2; }

}  // namespace weft_bench
