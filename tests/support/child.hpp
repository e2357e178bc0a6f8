// SPDX-License-Identifier: BSL-1.0
// Runs a function in a child process, for what ends a process: contract violations, crashes, POSIX fork
// itself.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

/// For functions that overflow a stack. Thread Sanitizer would be told of each call of theirs, and with the
/// fault inside its own code, which holds a lock there, the handler waits for ever.
#if defined(__clang__)
#if __has_feature(thread_sanitizer)
#define WEFT_TEST_OVERFLOWS [[clang::disable_sanitizer_instrumentation]]
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEFT_TEST_OVERFLOWS [[gnu::no_sanitize_thread]]
#endif
#if !defined(WEFT_TEST_OVERFLOWS)
#define WEFT_TEST_OVERFLOWS
#endif

namespace weft_test {

/// How a child ended and what it printed.
struct child_result {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;      ///< 0 if it ended by itself
  std::string output;  ///< both streams
  bool aborted() const { return signal == SIGABRT; }
};

/// Runs `f` in a child process and waits for its end; a child whose `f` returns ends with status 0, one whose
/// `f` throws with status 99. A hanging child is ended by the alarm it arms, with the test's own limit.
/// Requires that the calling process runs no thread that could hold a lock `f` needs.
template <class F>
child_result run_in_child(F&& f) {
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::signal(SIGABRT, SIG_DFL);  // the test framework's handler would report the child's end as its own
    std::signal(SIGALRM, SIG_DFL);
    const char* limit = std::getenv("WEFT_TEST_TIMEOUT");
    alarm(limit != nullptr ? static_cast<unsigned>(std::atoi(limit)) : 60);
    int status = 99;
    try {
      std::forward<F>(f)();
      status = 0;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "exception: %s\n", e.what());
    } catch (...) {
      std::fprintf(stderr, "exception of unknown type\n");
    }
    std::fflush(nullptr);
    _exit(status);
  }
  close(ends[1]);
  child_result result;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t n = read(ends[0], part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.output.append(part.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace weft_test
