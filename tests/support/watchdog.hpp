// SPDX-License-Identifier: BSL-1.0
// A hang is a failure that explains itself: after the time limit, the test's name and registered states are
// printed.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Writes the descriptions of the process's runtimes to a file (weft/sched/runtime_registry.hpp). Found by
/// its name: whoever has a runtime may be compiled in another way than this. Absent from programs without
/// weft.
extern "C" [[gnu::weak]] void (*weft_dump_living)(int) noexcept;

namespace weft_test {

/// Prints a state to stderr. It runs in a signal handler of a process that is lost: it must not wait for
/// anything.
using dumper = void (*)();

namespace detail {
inline char running[256] = "the program";
inline dumper dumpers[8] = {};
inline unsigned limit = 0;

inline void on_alarm(int) {
  std::fprintf(stderr, "hang: '%s' has run for %u seconds\n", running, limit);
  std::signal(SIGALRM, SIG_DFL);
  alarm(3);  // should a dumper hang as well
  for (dumper d : dumpers) {
    if (d != nullptr) d();
  }
  if (&weft_dump_living != nullptr && weft_dump_living != nullptr) weft_dump_living(STDERR_FILENO);
  std::abort();
}
}  // namespace detail

/// Registers what to print when a test hangs; at most eight.
inline void on_hang(dumper d) {
  for (dumper& free : detail::dumpers) {
    if (free == nullptr) {
      free = d;
      return;
    }
  }
}

/// Says what runs now, for the message.
inline void now_running(const char* name) { std::strncpy(detail::running, name, sizeof detail::running - 1); }

/// Starts the clock with the limit that ctest passes as WEFT_TEST_TIMEOUT; without it there is none. An
/// alarm, not a thread: tests count and starve threads.
inline void start_watchdog() {
  const char* seconds = std::getenv("WEFT_TEST_TIMEOUT");
  if (seconds == nullptr) return;
  detail::limit = static_cast<unsigned>(std::atoi(seconds));
  std::signal(SIGALRM, detail::on_alarm);
  alarm(detail::limit);
}

}  // namespace weft_test
