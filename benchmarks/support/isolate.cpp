// SPDX-License-Identifier: BSL-1.0
// Runs one measurement in a child process of its own.
#include "isolate.hpp"

#include "machine.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

namespace weft_bench {

namespace {

struct message {
  outcome result{};
  std::array<char, 240> error{};
};

void fill(message& m, const char* text) { std::strncpy(m.error.data(), text, m.error.size() - 1); }

[[noreturn]] void child(int pipe_end, const std::function<outcome()>& run, unsigned limit) {
  alarm(limit);
  message m;
  try {
    m.result = run();
    m.result.peak_mb = peak_resident_mb();
  } catch (const std::exception& e) {
    fill(m, e.what());
  } catch (...) {
    fill(m, "an exception of unknown type");
  }
  const bool sent = write(pipe_end, &m, sizeof m) == ssize_t(sizeof m);
  _exit(sent ? 0 : 1);  // no destructors: some of the runtimes cannot be shut down from here
}

double seconds(const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); }

}  // namespace

isolated isolate(const std::function<outcome()>& run, unsigned limit) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    close(ends[0]);
    child(ends[1], run, limit);
  }
  close(ends[1]);
  message m;
  const bool received = read(ends[0], &m, sizeof m) == ssize_t(sizeof m);
  close(ends[0]);
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  isolated r;
  r.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  r.result = m.result;
  r.error = m.error.data();
  if (!received)
    r.error = WIFSIGNALED(status) ? std::string("ended by ") + strsignal(WTERMSIG(status))
                                  : "ended without a result";
  return r;
}

}  // namespace weft_bench
