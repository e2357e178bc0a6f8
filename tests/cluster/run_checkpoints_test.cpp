// SPDX-License-Identifier: BSL-1.0
// The files of checkpoints of runs, whole and damaged, under a kernel that fails; this program's own system
// calls do so.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/cluster/detail/run_checkpoints.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Errors of these calls; 0: none. And how many calls have failed.
struct {
  std::atomic<int> of_writes{0}, of_syncs{0}, failures{0};
} kernel;

}  // namespace

extern "C" {
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  if (const int error = kernel.of_writes.load(); error != 0) {
    ++kernel.failures;
    errno = error;
    return -1;
  }
  return syscall(SYS_pwritev, fd, parts, count, offset, 0L);
}
int fdatasync(int fd) {
  if (const int error = kernel.of_syncs.load(); error != 0) {
    ++kernel.failures;
    errno = error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
}

using namespace weft::remote;
using weft_test::contains, weft_test::scratch, weft_test::slurp, weft_test::spill;
namespace fs = std::filesystem;

namespace {

constexpr code_address sort{0, 64};
constexpr double soon = 0.002, never = 1000;
task_name name(std::uint64_t n) { return n == 0 ? task_name{} : task_name{n, n * 7}; }
bytes value(std::uint64_t n, std::size_t size = 8) { return bytes(size, static_cast<std::byte>(n)); }

std::vector<std::string> files(const scratch& in) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(in.path())) all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}
template <class F>
void wait_until(const F& f) {
  while (!f()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
/// One process of a job that writes what it does to a directory.
struct process {
  run_checkpoints c;

  process(const scratch& in, int rank, int size, double seconds = soon) : c(rank, size) {
    c.write_to(in.path().string(), seconds);
  }
  /// Begins a run, and records tasks from `from` to before `to` below the root.
  void record(const scratch& in, std::uint64_t from, std::uint64_t to) {
    c.begin_run();
    for (std::uint64_t n = from; n < to; ++n) {
      const std::size_t before = files(in).size();
      c.tasks().add(name(n), name(0), sort, value(n, 10 * n));
      wait_until([&] { return files(in).size() > before; });
    }
  }
};
/// The name of the file with the largest number.
std::string newest_file(const scratch& in) {
  std::uint64_t number = 0;
  std::string newest;
  for (const std::string& f : files(in))
    if (const auto parsed = segment_name::parse(f); parsed && parsed->number >= number) {
      number = parsed->number;
      newest = f;
    }
  return newest;
}
/// What resuming from the directory says.
std::string refusal(const std::string& path) {
  run_checkpoints c(0, 1);
  try {
    const std::size_t found = c.resume(path);
    CHECK(c.tasks().looking() == (found != 0));
    return "resumed " + std::to_string(found);
  } catch (const std::exception& e) {
    CHECK(c.tasks().size() == 0);
    CHECK(!c.tasks().looking());
    return e.what();
  }
}
std::string refusal(const scratch& in) { return refusal(in.path().string()); }
/// A directory with one file of two records.
std::string make_file(const scratch& in) {
  const weft::io::directory d(in / "");
  segment_file::write(d, {loaded_code::at_start().identity(), 1, 7, 3},
                      {{name(1), name(0), sort, std::make_shared<const bytes>(value(1))},
                       {name(2), name(9), sort, std::make_shared<const bytes>(value(2, 5))}});
  return in / "3-7.checkpoint";
}
/// What `f` prints to the standard error stream.
template <class F>
std::string said_by(const scratch& in, const F& f) {
  const std::string path = in / "said";
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO), to = ::creat(path.c_str(), 0600);
  REQUIRE(::dup2(to, STDERR_FILENO) >= 0);
  f();
  REQUIRE(::dup2(before, STDERR_FILENO) >= 0);
  ::close(before);
  ::close(to);
  std::string text = slurp(path);
  fs::remove(path);
  return text;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("what a job has recorded is found by one of any number of processes", "[checkpoint]") {
  const scratch here;
  {
    process a(here, 0, 2), b(here, 1, 2);
    a.record(here, 1, 4);
    b.record(here, 4, 6);
  }  // killed: no run has ended
  for (const int size : {1, 2, 3})
    for (int rank = 0; rank < size; ++rank) {
      run_checkpoints c(rank, size);
      CHECK(c.resume(here.path().string()) == 5);
      CHECK(c.tasks().may_be_kind(sort));
      for (std::uint64_t n = 1; n < 6; ++n) {
        CHECK(c.tasks().looking());
        CHECK(c.tasks().find(name(n)) == value(n, 10 * n));
      }
      CHECK(!c.tasks().looking());
    }
}

TEST_CASE("the files of a job stay until the run has ended well", "[checkpoint]") {
  const scratch here;
  process(here, 0, 1).record(here, 1, 4);
  CHECK(files(here).size() == 3);
  {
    process next(here, 0, 1);
    CHECK(next.c.resume(here.path().string()) == 3);
    next.record(here, 4, 5);
    next.c.tasks().add(name(5), name(0), sort, value(5, 50));
    next.c.end_run(false);  // writes what is not in a file yet
  }
  CHECK(files(here).size() == 5);
  spill(here / "2-9.checkpoint.weft-0123456789abcdef", "torn");
  spill(here / "note.txt", "of the user");
  process last(here, 0, 1), other(here, 1, 2);
  CHECK(last.c.resume(here.path().string()) == 5);
  CHECK(other.c.resume(here.path().string()) == 5);
  other.record(here, 9, 10);
  last.c.begin_run();
  CHECK(last.c.tasks().find(name(5)) == value(5, 50));
  other.c.end_run(true);
  CHECK(files(here).size() == 7);  // of those that it has read, none is its own
  last.c.end_run(true);
  CHECK(files(here) == std::vector<std::string>{"note.txt"});
  CHECK(last.c.tasks().size() == 0);
}

TEST_CASE("a run leaves the files of a later one alone", "[checkpoint]") {
  const scratch here;
  {
    process a(here, 0, 1);
    a.record(here, 1, 3);
    a.c.end_run(true);
    CHECK(files(here).empty());
    a.record(here, 3, 5);
  }
  process b(here, 0, 1);
  CHECK(b.c.resume(here.path().string()) == 2);
  b.c.begin_run();  // the first one is executed again
  b.c.end_run(true);
  CHECK(files(here).size() == 2);
  b.c.begin_run();
  CHECK(b.c.tasks().looking());
  CHECK(b.c.tasks().find(name(4)) == value(4, 40));
  b.c.end_run(true);
  CHECK(files(here).empty());
}

TEST_CASE("who does not resume leaves the files of another job, and takes other names", "[checkpoint]") {
  const scratch here;
  process(here, 0, 1).record(here, 1, 3);
  const auto before = files(here);
  process b(here, 0, 1);
  b.record(here, 3, 5);
  CHECK(files(here).size() == 4);
  b.c.end_run(true);
  CHECK(files(here) == before);
}

TEST_CASE("a file without a record that is needed is removed during the run", "[checkpoint]") {
  const scratch here;
  process(here, 0, 1).record(here, 1, 3);
  const auto before = files(here);
  process b(here, 0, 1);
  CHECK(b.c.resume(here.path().string()) == 2);
  b.c.begin_run();
  b.c.tasks().add(name(3), name(20), sort, value(3));
  wait_until([&] { return files(here).size() == 3; });
  const auto all = files(here);
  const auto fresh = std::find_if(all.begin(), all.end(), [&before](const std::string& f) {
    return std::find(before.begin(), before.end(), f) == before.end();
  });
  REQUIRE(fresh != all.end());
  b.c.tasks().add(name(20), name(0), sort, value(20));
  wait_until([&] { return files(here).size() == 3 && !fs::exists(here / *fresh); });
  for (const std::string& f : before) CHECK(fs::exists(here / f));
  b.c.end_run(false);
  CHECK(refusal(here) == "resumed 3");
}

TEST_CASE("a long run has few files", "[checkpoint]") {
  const scratch here(weft_test::medium::memory);
  constexpr std::uint64_t tasks = 100;
  std::size_t most = 0, written = 0;
  {
    process a(here, 0, 1, 0.0005);
    a.c.begin_run();
    for (std::uint64_t n = 1; n <= tasks; ++n) {
      const std::string before = newest_file(here);
      a.c.tasks().add(name(n), name(n % 3 == 0 ? 1000 + n / 9 : 0), sort, value(n, 10 * n));
      wait_until([&] { return newest_file(here) != before; });
      most = std::max(most, files(here).size());
    }
    a.c.tasks().add(name(1001), name(0), sort, value(1001));  // above 9, 12 and 15
    a.c.end_run(false);
    written = a.c.written();
  }
  INFO("at most " << most << " files of " << written);
  CHECK(written > 90);
  CHECK(most >= 30);
  CHECK(most <= 40);
  run_checkpoints c(0, 1);
  CHECK(c.resume(here.path().string()) == tasks + 1 - 3);
  for (std::uint64_t n = 1; n <= tasks; ++n)
    CHECK(c.tasks().find(name(n)) ==
          (n == 9 || n == 12 || n == 15 ? std::nullopt : std::optional(value(n, 10 * n))));
}

TEST_CASE("a file that is cut or changed is refused by name, wherever that is", "[checkpoint]") {
  const scratch here(weft_test::medium::memory);
  const std::string path = make_file(here), whole = slurp(path);
  CHECK(whole.size() == 64 + 2 * 56 + 8 + 5 + 4);
  CHECK(refusal(here) == "resumed 2");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    spill(path, whole.substr(0, size));
    CHECK(refusal(here) == "weft: '" + path +
                               (size < 16 ? "' is not a checkpoint of a run"
                                          : "' is damaged: its size or its checksum is wrong"));
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int bit : {0, 7}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      spill(path, changed);
      const std::string said = refusal(here);
      CHECK_THAT(said, contains("weft: '" + path + "' is "));
      if (at >= 20) CHECK_THAT(said, contains("damaged"));
    }
  spill(path, whole + '\0');
  CHECK_THAT(refusal(here), contains("damaged"));
  spill(path, whole);
  CHECK(refusal(here) == "resumed 2");
}

TEST_CASE("files of other programs, formats and kinds are refused by name", "[checkpoint]") {
  const scratch here;
  const weft::io::directory d(here / "");
  const auto content = std::make_shared<const bytes>(value(1));
  segment_file::write(d, {loaded_code::at_start().identity() + 1, 1, 1, 0}, {{name(1), {}, sort, content}});
  CHECK(refusal(here) == "weft: '" + (here / "0-1.checkpoint") +
                             "' is a checkpoint of another program; a run is resumed by the same file that "
                             "was killed");
  fs::remove(here / "0-1.checkpoint");
  const std::string path = make_file(here);
  std::string other = slurp(path);
  other[16] = 2;
  spill(path, other);
  CHECK(refusal(here) ==
        "weft: '" + path + "' is a checkpoint of another version of weft: its format is 2, and not 1");
  spill(path, "something else");
  CHECK(refusal(here) == "weft: '" + path + "' is not a checkpoint of a run");
  fs::remove(path);
  fs::create_directory(path);
  CHECK(refusal(here) == "weft: '" + path + "' is not an ordinary file");
  fs::remove(path);
  fs::create_symlink("elsewhere", path);
  CHECK(refusal(here) == "weft: '" + path + "' is a symbolic link");
  fs::remove(path);
  for (const char* of_others : {"1.checkpoint", "-1.checkpoint", "1-.checkpoint", "1-2.checkpoints",
                                "x1-2.checkpoint", "1-2.checkpoint.weft-00",
                                "99999999999999999999999-1.checkpoint", "0-18446744073709551615.checkpoint"})
    spill(here / of_others, "not ours");
  CHECK(refusal(here) == "resumed 0");
}

TEST_CASE("a directory that is none, or cannot be listed, is refused", "[checkpoint]") {
  const scratch here;
  CHECK(refusal(here / "missing") == "resumed 0");
  spill(here / "file", "");
  CHECK_THAT(refusal(here / "file"),
             contains("weft: cannot open '" + (here / "file") + "/': Not a directory"));
  run_checkpoints c(0, 1);
  CHECK_THROWS_AS(c.write_to(here / "file/below", 1), std::system_error);
  CHECK_THROWS_AS(c.write_to(here / "file", 1), std::system_error);
  c.write_to(here / "made/for/it", 1);
  CHECK(fs::is_directory(here / "made/for/it"));

  fs::create_directory(here / "closed");
  fs::permissions(here / "closed", fs::perms::owner_exec | fs::perms::others_exec);
  fs::permissions(here.path(), fs::perms::all);
  std::string said;
  constexpr uid_t nobody = 65534;
  std::thread([&] {  // root may list it
    if (::geteuid() == 0) ::setfsuid(nobody);
    said = refusal(here / "closed");
  })
      .join();
  CHECK(said == "weft: cannot list '" + (here / "closed") + "': Permission denied");
}

TEST_CASE("results that cannot be read any more are not found", "[checkpoint]") {
  const scratch here;
  const std::string path = make_file(here), whole = slurp(path);
  std::vector<std::function<void()>> harms = {[&] { fs::remove(path); },
                                              [&] { fs::resize_file(path, 64 + 56 + 8 + 56); },
                                              [&] {
                                                std::string changed = whole;
                                                changed[64 + 56 + 8 + 56] ^= 1;
                                                spill(path, changed);
                                              }};
  for (const auto& harm : harms) {
    spill(path, whole);
    run_checkpoints c(0, 1);
    CHECK(c.resume(here.path().string()) == 2);
    c.begin_run();
    harm();
    CHECK(!c.tasks().find(name(2)));
    CHECK(!c.tasks().find(name(2)));
    if (fs::exists(path)) CHECK(c.tasks().find(name(1)) == value(1));
  }
}

TEST_CASE("a device that fails is told of once, and nothing is lost when it works again", "[checkpoint]") {
  for (const bool syncs : {false, true}) {
    const scratch here;
    const int error = syncs ? EIO : ENOSPC;
    process a(here, 2, 3);
    a.record(here, 1, 2);
    const std::string said = said_by(here, [&] {
      const auto before = files(here).size();
      (syncs ? kernel.of_syncs : kernel.of_writes) = error;
      a.c.tasks().add(name(2), name(0), sort, value(2));
      kernel.failures = 0;
      wait_until([] { return kernel.failures >= 3; });
      CHECK(files(here).size() == before);
      kernel.of_syncs = kernel.of_writes = 0;
      wait_until([&] { return files(here).size() > before; });
    });
    CHECK(count(said, "\n") == 1);
    CHECK_THAT(
        said,
        contains("weft: process 2 of the cluster cannot write a checkpoint, and goes on: weft: cannot "));
    CHECK_THAT(said, contains(syncs ? "Input/output error" : "No space left on device"));
    a.c.end_run(false);
    CHECK(a.c.written() == 2);
    CHECK(a.c.failed() >= 3);
    CHECK(refusal(here) == "resumed 2");
  }
}

TEST_CASE("a directory that goes away is told of once, and the run goes on", "[checkpoint]") {
  const scratch here;
  fs::create_directory(here / "gone");
  const std::string said = said_by(here, [&] {
    weft::thread_cluster c(1, {.checkpoint = here / "gone", .checkpoint_seconds = soon});
    fs::remove(here / "gone");
    run_checkpoints alone(1, 2);
    alone.write_to(here / "gone", soon);
    alone.begin_run();
    fs::remove(here / "gone");
    alone.tasks().add(name(1), name(0), sort, value(1));
    CHECK(c.run([] { return 5; }) == 5);
    alone.end_run(false);
    CHECK(alone.failed() >= 1);
    CHECK(alone.written() == 0);
  });
  CHECK(count(said, "process 1 of the cluster cannot write a checkpoint") == 1);
}

TEST_CASE("a cluster takes its options, and resumes", "[checkpoint]") {
  const scratch here;
  CHECK_THROWS_AS(weft::thread_cluster(1, {.checkpoint = here / "a", .checkpoint_seconds = -1}),
                  weft::option_error);
  CHECK_THROWS_AS(weft::thread_cluster(2, {.checkpoint_seconds = 0.0 / 0.0}), weft::option_error);
  CHECK(!fs::exists(here / "a"));
  weft::thread_cluster(1, {.checkpoint = here / "a", .checkpoint_seconds = 0});
  CHECK(!fs::exists(here / "a"));
  for (const int processes : {1, 3}) {
    const std::string path = make_file(here);
    weft::thread_cluster c(processes, {.checkpoint = here / "a", .checkpoint_seconds = never});
    CHECK(c.resume(here / "none") == 0);
    CHECK(c.resume(here.path().string()) == 2);
    CHECK_THROWS_AS(c.run([]() -> int { throw std::runtime_error("not today"); }), std::runtime_error);
    CHECK(fs::exists(path));
    CHECK(c.run([] { return 3; }) == 3);
    CHECK(!fs::exists(path));  // the run has ended well
    CHECK(c.counters(0).checkpoints == 0);
    spill(path, "torn");
    CHECK_THROWS_AS(c.resume(here.path().string()), weft::error);
    CHECK(c.run([] { return 4; }) == 4);
    CHECK(fs::exists(path));
    fs::remove(path);
  }
}
