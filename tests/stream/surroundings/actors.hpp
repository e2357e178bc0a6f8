// SPDX-License-Identifier: BSL-1.0
// The processes around a stream: those that write, recover, export and look at it, and what they report.
#pragma once

#include "kernel.hpp"
#include "versions.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace surroundings {

enum class verb { write, recover, export_to, ask, look };
enum class ending { none, well, system_error, weft_error, wrong };
/// How far a process has come.
enum class stage { not_begun, begun, opened, closing, over };

/// What a process is to do.
struct order {
  verb what = verb::write;
  bool overwrite = false;
  bool segmented = false;
  bool in_tasks = false;   ///< with a runtime
  bool abandoned = false;  ///< the stream is destroyed without close
  version written;
  unsigned parts = 1;
  unsigned times = 1;  ///< that it does it; others may be in its way in between
  std::uint64_t commit_every = 0;
  unsigned delay = 0;    ///< microseconds before it begins
  long kill_after = -1;  ///< microseconds; -1: not
  kernel_settings settings;
};

/// What it has done, in memory that it shares with the test. Relaxed would do but for `stop`: it is read
/// after its end.
struct report {
  std::atomic<stage> reached{stage::not_begun};
  std::atomic<ending> how{ending::none};
  std::atomic<int> code{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0}, replaced{0}, busy{0};
  char text[500] = {};

  void say(ending e, const std::string& what, int errno_value = 0) {
    std::strncpy(text, what.c_str(), sizeof text - 1);  // the rest is zeros
    code = errno_value;
    how = e;
  }
};
inline constexpr std::size_t most_actors = 8;
inline report* shared_reports() {
  static report* const all = [] {
    void* const place = ::mmap(nullptr, most_actors * sizeof(report), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    return static_cast<report*>(place);
  }();
  return all;
}

/// Which contents may be found under the final name.
struct expectation {
  std::vector<std::string> foreign;  ///< what was there before
  std::vector<version> versions;
  bool beginnings = false;      ///< a recovery may have published a beginning of a version
  bool may_be_absent = true;    ///< nothing was there before
  bool may_be_refused = false;  ///< what was there before, or stands beside it, is no stream

  static constexpr std::size_t none = SIZE_MAX;
  /// *Returns*: which one it is.
  std::size_t find(const std::string& bytes) const {
    for (std::size_t i = 0; i < foreign.size(); ++i)
      if (foreign[i] == bytes) return versions.size() + i;
    for (std::size_t i = 0; i < versions.size(); ++i)
      if (versions[i].size == bytes.size() && versions[i].text() == bytes) return i;
    for (std::size_t i = 0; beginnings && i < versions.size(); ++i)
      if (!versions[i].complete && bytes.size() < versions[i].size && versions[i].text().starts_with(bytes))
        return i;
    return none;
  }
};

inline void write_stream(const std::string& path, const order& o, report& r) {
  weft::append_file file(path,
                         {.layout = o.segmented ? weft::append_layout::segmented : weft::append_layout::plain,
                          .overwrite = o.overwrite,
                          .buffer = 4096,
                          .commit_every = o.commit_every,
                          .durable = false,
                          .sync = o.written.number % 2 == 0});
  r.reached = stage::opened;
  const std::string all = o.written.text();
  const std::size_t step = all.size() / o.parts + 1;
  if (o.in_tasks) {
    weft::runtime rt({.workers = 2});
    rt.run(
        [&](weft::append out) {
          for (std::size_t at = 0; at < all.size(); at += step)
            weft::fork([part = std::string_view(all).substr(at, step)](weft::append to) { to.write(part); },
                       out);
        },
        file);
  } else {
    for (std::size_t at = 0; at < all.size(); at += step) {
      file.write(std::string_view(all).substr(at, step));
      before_call();
    }
  }
  if (o.abandoned) return;
  r.reached = stage::closing;
  file.close();
}

/// *Returns*: which version it has found; none where that may be. *Throws*: what is wrong.
inline std::size_t look_once(const std::string& path, const expectation& expected) {
  std::string bytes;
  try {
    const weft::append_reader reader(path);
    bytes.resize(reader.size());
    before_call();
    const std::size_t got = reader.pread(std::as_writable_bytes(std::span(bytes)), 0);
    if (got != bytes.size()) throw std::runtime_error("read fewer bytes than the stream has");
    reader.verify();
  } catch (const std::system_error& e) {
    const bool absent = e.code() == std::errc::no_such_file_or_directory && expected.may_be_absent;
    const bool refused = (e.code() == std::errc::permission_denied ||
                          e.code() == std::errc::no_such_device_or_address) &&  // a socket
                         expected.may_be_refused;
    if (absent || refused) return expectation::none;
    throw std::runtime_error(std::string("the reader throws: ") + e.what());
  } catch (const weft::error& e) {
    const bool unfinished = std::strstr(e.what(), "is not finished") != nullptr && expected.may_be_absent;
    if (unfinished || expected.may_be_refused) return expectation::none;
    throw std::runtime_error(std::string("the reader throws: ") + e.what());
  }
  const std::size_t found = expected.find(bytes);
  if (found == expectation::none)
    throw std::runtime_error("found " + std::to_string(bytes.size()) +
                             " bytes that are no whole version, beginning with: " + bytes.substr(0, 30));
  return found;
}
/// Looks until it is told to stop.
inline void look(const std::string& path, const expectation& expected, report& r) {
  std::size_t last = expectation::none;
  for (bool more = true; more; ++r.looks) {
    more = !r.stop;
    const std::size_t found = look_once(path, expected);
    if (found == expectation::none) continue;
    r.replaced += last != expectation::none && found != last;
    last = found;
  }
}

/// Does once what is to be done. *Returns*: whether it may do it again.
inline bool do_once(const std::string& path, const std::string& other, const order& o,
                    const expectation& expected, report& r) {
  r.reached = stage::begun;
  try {
    switch (o.what) {
      case verb::write:
        write_stream(path, o, r);
        break;
      case verb::recover:
        weft::recover(path, o.overwrite);
        break;
      case verb::export_to:
        weft::append_reader(path).export_plain(other, o.overwrite);
        break;
      case verb::ask:
        weft::recoverable(path);
        break;
      case verb::look:
        look(path, expected, r);
        break;
    }
    r.say(ending::well, "");
    return true;
  } catch (const std::system_error& e) {
    r.say(ending::system_error, e.what(), e.code().value());
    const bool busy = e.code() == std::errc::device_or_resource_busy;
    r.busy += busy;
    return busy;
  } catch (const weft::error& e) {
    r.say(ending::weft_error, e.what());
    return o.what == verb::recover && std::strstr(e.what(), "is still being written") != nullptr;
  } catch (const std::exception& e) {
    r.say(ending::wrong, e.what());
    return false;
  }
}
/// The life of a process, after it was forked.
inline void act(const std::string& path, const std::string& other, const order& o,
                const expectation& expected, report& r) {
  kernel = o.settings;
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(20);  // the limit of all waiting
  if (o.kill_after >= 0) {
    sigevent kills{};
    kills.sigev_notify = SIGEV_SIGNAL;
    kills.sigev_signo = SIGKILL;
    timer_t timer;
    const itimerspec when{{0, 0}, {0, (o.kill_after + 1) * 1000}};
    if (::timer_create(CLOCK_MONOTONIC, &kills, &timer) == 0) ::timer_settime(timer, 0, &when, nullptr);
  }
  if (o.delay > 0) nap(o.delay);
  kernel.active = true;
  for (unsigned i = 0; i < o.times && do_once(path, other, o, expected, r); ++i) {
  }
  r.reached = stage::over;
}

/// A process of this program; the test waits for it.
class actor {
 public:
  actor(report& r, const std::function<void(report&)>& life) : report_(::new(&r) report) {
    process_ = ::fork();
    if (process_ != 0) return;
    life(r);
    ::_exit(0);
  }
  void wait() {
    if (waited_) return;
    while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
    waited_ = true;
  }
  bool killed() const { return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL; }
  /// What is wrong with its end; empty if nothing is.
  std::string problem() const {
    if (process_ < 0) return "could not be forked";
    if (WIFSIGNALED(status_) && WTERMSIG(status_) == SIGALRM) return "hangs";
    if (WIFSIGNALED(status_) && !killed()) return "ended by signal " + std::to_string(WTERMSIG(status_));
    if (!killed() && (!WIFEXITED(status_) || WEXITSTATUS(status_) != 0)) return "ended badly";
    return report_->how == ending::wrong ? report_->text : "";
  }
  report& told() const { return *report_; }

 private:
  report* report_;
  pid_t process_;
  int status_ = 0;
  bool waited_ = false;
};

}  // namespace surroundings
