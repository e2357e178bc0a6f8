// SPDX-License-Identifier: BSL-1.0
// Runs code on thousands of simulated processors, one for each thread, in virtual time: what bodies and
// messages take is given, and the scheduler's own operations have fixed prices, without caches. Shows how the
// processes of a cluster behave where there are many, in exactly the same way each time.
#pragma once

#include <cstdint>
#include <functional>

namespace simulation {

/// What happened in one run.
struct passed {
  std::uint64_t points = 0;    ///< marked points passed
  std::uint64_t switches = 0;  ///< times another thread went on
  std::uint64_t hash = 0;      ///< of who went on when
};

/// Calls `body` as the first thread of the machine. If no thread can go on, or the virtual time passes
/// `limit` nanoseconds, says so with a line for each thread and ends the process. *Requires*: every thread
/// that `body` starts has ended when it returns.
passed run_in_virtual_time(const std::function<void()>& body, std::uint64_t limit = 60'000'000'000);

/// The calling thread computes for so many nanoseconds.
void work(double nanoseconds) noexcept;
/// The calling thread's time, in nanoseconds. *Cost*: none, in the simulation.
std::uint64_t time_here() noexcept;
/// The calling thread looks at `word` again and again, until wake() or this time. As wait_until(), but it
/// keeps its processor, so it goes on at once.
void poll_until(const void* word, std::uint64_t end) noexcept;
/// Who polls `word` goes on at this time, if not before.
void wake_at(const void* word, std::uint64_t time) noexcept;

}  // namespace simulation
