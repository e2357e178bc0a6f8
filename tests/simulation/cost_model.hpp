// SPDX-License-Identifier: BSL-1.0
// Runs code on simulated processors, one for each thread, where every operation has a price: shows how a
// scheduler behaves on more processors than there are, in exactly the same way each time a program is run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace simulation {

/// Prices in nanoseconds. The defaults are of the order of what is measured on servers with one socket
/// (docs/reference/performance.md, "Simulated processors").
struct prices {
  double hit = 0.5;       ///< a load or store of a line that is in the own cache
  double exchange = 5;    ///< an atomic read-modify-write takes this longer,
  double fence = 8;       ///< a full fence this
  double transfer = 100;  ///< a line comes from another processor's cache, and is not there for others then;
  double occupancy = 10;  ///< if it is only read, the next reader may ask after this
  double clock = 20;      ///< a look at the clock
  double pause = 20;      ///< a round of a spin loop,
  double yield = 500;     ///< and one that gives the processor away
  double process_fence = 5'000;  ///< a membarrier: for the caller,
  double interrupt = 1'000;      ///< and for each other processor
  double sleep = 1'000;          ///< the system call that begins to wait,
  double wake = 2'000;           ///< the one that ends it,
  double wake_up = 10'000;       ///< and until the other thread runs
};

/// What one thread did.
struct share {
  std::uint64_t transfers = 0;   ///< lines that came into its cache from another one
  std::uint64_t operations = 0;  ///< atomic operations, fences and looks at the clock
};

/// What happened on a simulated machine.
struct bill {
  std::uint64_t transfers = 0, process_fences = 0, sleeps = 0;
  std::uint64_t points = 0, switches = 0;  ///< of the simulation itself
  std::vector<share> of_thread{};
};

/// Calls `body` as the first thread of the machine. *Requires*: as simulate(); at most 64 threads.
bill run_with_prices(const std::function<void()>& body, const prices& p = {});

/// The calling thread computes for so many nanoseconds.
void work(double nanoseconds) noexcept;
/// The calling thread's time, in nanoseconds. *Cost*: none, in the simulation.
double time_here() noexcept;
/// The calling thread's number. *Requires*: a machine runs.
unsigned thread_here() noexcept;
/// What has happened up to now. *Requires*: a machine runs. *Cost*: none, in the simulation.
bill bill_here();

}  // namespace simulation
