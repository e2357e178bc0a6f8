// SPDX-License-Identifier: BSL-1.0
// The runtimes that flow is tested on: alone, with thieves, with and without tasks that run inside fork.
#pragma once

#include "fault/waiting.hpp"
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

namespace weft_test {

/// Calls f on a runtime of each shape.
template <class F>
void on_each_runtime(F&& f) {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false})
      for (const unsigned surplus : {0u, 4u}) {
        INFO("workers " << workers << ", inlining " << inlining << ", surplus " << surplus);
        weft::runtime rt({.workers = workers, .inlining = inlining, .surplus = surplus});
        f(rt);
      }
}

/// One worker that runs every task inside fork, as the serial program does.
inline weft::runtime_options alone_and_inlining() { return {.workers = 1}; }

/// One worker that runs a task only when the body that forked it has ended or waits.
inline weft::runtime_options alone_and_deferring() { return {.workers = 1, .inlining = false}; }

/// Two workers, and nothing runs inside fork: a task that starts while its parent is busy was stolen.
inline weft::runtime_options two_and_deferring() { return {.workers = 2, .inlining = false}; }

/// The kernel thread that runs the caller. Never remembered by a compiler, as std::this_thread::get_id may
/// be.
inline long kernel_thread() { return syscall(SYS_gettid); }

/// A task that forks `child` and stays busy until a thief has started it; false if none comes.
template <class F>
bool fork_to_thief(F&& child) {
  std::atomic<bool> started{false};
  weft::fork([&started, child = std::forward<F>(child)]() mutable {
    started = true;
    child();
  });
  return wait_until([&] { return started.load(); });
}

/// Waits until somebody waits and cannot go on by himself any more, which no counter tells.
inline bool wait_for_waiter(const weft::runtime& rt) {
  return wait_until([&] {
    const std::string now = rt.describe();
    return now.find(" waits for ") != std::string::npos && now.find("that has happened") == std::string::npos;
  });
}

}  // namespace weft_test
