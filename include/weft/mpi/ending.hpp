// SPDX-License-Identifier: BSL-1.0
// How a process ends the whole job.
#pragma once

#include <weft/base/config.hpp>

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace weft::inline WEFT_ABI::mpi {

namespace detail {
/// Set by the first thread that ends the job. Only that flag matters: relaxed.
inline std::atomic<bool> job_ends{false};
/// Why the job is to end, if this process has abandoned it. A text that never changes: relaxed.
inline std::atomic<const char*> job_abandoned{nullptr};
}  // namespace detail

/// Ends the whole job; prints who ends it, as its number in MPI_COMM_WORLD, and why. mpiexec of MPICH loses
/// what a process has printed immediately before it calls MPI_Abort, so this waits for a tenth of a second.
[[noreturn]] inline void end_job(const std::string& why) noexcept {
  while (detail::job_ends.exchange(true, std::memory_order_relaxed)) ::pause();  // another thread ends it
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "weft: process %d %s\n", rank, why.c_str());
  std::fflush(nullptr);
  ::usleep(100000);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// Ends the job if end_job_soon() was called.
inline void end_abandoned_job() noexcept {
  int over = 0;
  const char* const why = detail::job_abandoned.load(std::memory_order_relaxed);
  if (why == nullptr || detail::job_ends.load(std::memory_order_relaxed)) return;
  if (MPI_Finalized(&over) == MPI_SUCCESS && over == 0) end_job(why);
}

/// Ends the job when this process ends, or after a second. Destructors call it that an exception passes: they
/// cannot know its text, and who catches it shall have time to print that. `why`: a literal.
inline void end_job_soon(const char* why) noexcept {
  const char* nothing = nullptr;
  if (!detail::job_abandoned.compare_exchange_strong(nothing, why, std::memory_order_relaxed)) return;
  try {
    if (std::atexit([] { end_abandoned_job(); }) != 0) end_job(why);
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      end_abandoned_job();
    }).detach();
  } catch (...) {
    end_job(why);
  }
}

}  // namespace weft::inline WEFT_ABI::mpi
