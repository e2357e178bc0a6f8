// SPDX-License-Identifier: BSL-1.0
// Runs code on the simulated platform, once for a seed, and again in exactly the same way.
#pragma once

#include <cstdint>
#include <functional>

namespace simulation {

/// What happened in one run.
struct trace {
  std::uint64_t points = 0;    ///< marked points passed
  std::uint64_t switches = 0;  ///< times another thread went on
  std::uint64_t hash = 0;      ///< of who passed which point
};

/// Calls `body` as the first thread of a simulated machine whose threads take turns as the seed says. If no
/// thread can go on (a lost wake-up, a deadlock), or all together pass more than `limit` points, says so with
/// a line for each thread and ends the process. *Requires*: every thread that `body` starts has ended when it
/// returns.
trace simulate(std::uint64_t seed, const std::function<void()>& body, std::uint64_t limit = 200'000'000);

}  // namespace simulation
