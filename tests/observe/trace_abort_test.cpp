// SPDX-License-Identifier: BSL-1.0
// A process that aborts while somebody writes its trace: the text is whole nevertheless.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/observe/trace_abort.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

constexpr int records = 5000;  // more text than a pipe holds

/// A child process with a trace in a pipe, whose first thread fills the pipe and then waits for a reader.
template <class First, class Second>
[[noreturn]] void write_and_abort(const std::string& path, int about_to, First first, Second second) {
  std::signal(SIGABRT, SIG_DFL);
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(60);
  weft::observe::watched_trace t(path, 1, 1 << 20);
  for (int i = 0; i < records; ++i)
    t.row(0).add(weft::observe::trace_kind::task, weft::observe::ticks(), t.row(0).keep("some"));
  std::thread writer([&] { first(t); });
  pollfd full{::open(path.c_str(), O_WRONLY | O_CLOEXEC), POLLOUT, 0};
  while (::poll(&full, 1, 20) != 0) ::usleep(1000);
  if (::write(about_to, "x", 1) != 1) ::_exit(1);
  second(t);
  writer.join();
  ::_exit(2);
}

/// What a reader finds that begins late, and by which signal the process has ended.
template <class First, class Second>
std::string read_late(First first, Second second, int& signal) {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "trace.json").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) write_and_abort(path, ends[1], first, second);
  ::close(ends[1]);
  char byte = 0;
  CHECK(::read(ends[0], &byte, 1) == 1);
  ::close(ends[0]);
  int status = 0;
  bool ended = false;
  for (int i = 0; i < 50 && !ended; ++i) {  // one that does not wait ends now
    ::usleep(10'000);
    ended = ::waitpid(child, &status, WNOHANG) == child;
  }
  CHECK(::fcntl(reader, F_SETFL, 0) == 0);
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(reader, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  ::close(reader);
  if (!ended) CHECK(::waitpid(child, &status, 0) == child);
  signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return text;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("a second thread that aborts waits until the first has written the trace") {
  int signal = 0;
  const auto dies = [](weft::observe::watched_trace&) { std::abort(); };
  const std::string text = read_late(dies, dies, signal);
  CHECK(signal == SIGABRT);
  CHECK(occurrences(text, "\"some\"") == records);
  CHECK_THAT(text, Catch::Matchers::StartsWith("{\"displayTimeUnit\""));
  CHECK_THAT(text, Catch::Matchers::EndsWith("\"dropped_records\":0}}\n"));
}

TEST_CASE("a thread that aborts waits for one that is writing the trace") {
  int signal = 0;
  const std::string text = read_late([](weft::observe::watched_trace& t) { static_cast<void>(t.write()); },
                                     [](weft::observe::watched_trace&) { std::abort(); }, signal);
  CHECK(signal == SIGABRT);
  CHECK(occurrences(text, "\"some\"") == 2 * records);  // a pipe keeps what was written first
  CHECK(occurrences(text, "\"dropped_records\":0}}\n") == 2);
  CHECK_THAT(text, Catch::Matchers::EndsWith("\"dropped_records\":0}}\n"));
}
