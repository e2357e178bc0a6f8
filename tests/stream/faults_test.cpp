// SPDX-License-Identifier: BSL-1.0
// Append files under a kernel that fails, interrupts and writes too little: this program's own system calls
// do so; and on file systems that are full.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/figure.hpp"
#include "support/scratch.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <aio.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

/// What happens to the calls that change files. Relaxed would do: set while no worker is busy.
struct {
  std::atomic<long> until_failure{-1};  // calls before one fails; -1: none does
  std::atomic<int> error{0};
  std::atomic<bool> for_ever{false};  // and all after it
  std::atomic<long> opens_left{-1};   // before no descriptor is left for the next; -1: enough are
  std::atomic<bool> bumpy{false};     // every other call is interrupted, and writes take half
  std::atomic<long> calls{0}, fired{0};
} kernel;

void reset() {
  kernel.until_failure = -1;
  kernel.bumpy = false;
  kernel.calls = kernel.fired = 0;
}

/// *Returns*: whether the call goes on.
bool admitted() {
  if (kernel.bumpy && kernel.calls++ % 2 == 0) {
    ++kernel.fired;
    errno = EINTR;
    return false;
  }
  long left = kernel.until_failure;
  while (left > 0 && !kernel.until_failure.compare_exchange_weak(left, left - 1)) {
  }
  if (left != 0) return true;
  if (!kernel.for_ever) kernel.until_failure = -1;
  ++kernel.fired;
  errno = kernel.error;
  return false;
}
std::size_t part_of(std::size_t size) { return kernel.bumpy ? (size + 1) / 2 : size; }

/// What a power failure would leave: of each file what it held when it was last synchronised, under the names
/// that its directory had when that was.
struct device_image {
  std::map<ino_t, std::string> contents;
  std::map<std::string, ino_t> names;
};
/// The device below the fake kernel.
struct {
  std::mutex mutex;
  bool recording = false;
  const weft::append_file* writer = nullptr;
  device_image now;
  std::vector<std::pair<std::uint64_t, device_image>> history;  // with the bytes that were committed then
} device;

void bring_to_device(int fd) {
  const std::lock_guard hold(device.mutex);
  if (!device.recording) return;
  const std::string opened = "/proc/self/fd/" + std::to_string(fd);
  struct stat about{};
  if (::fstat(fd, &about) != 0) std::abort();
  if (S_ISDIR(about.st_mode)) {
    device.now.names.clear();
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::read_symlink(opened))) {
      struct stat named{};
      if (::lstat(entry.path().c_str(), &named) == 0)
        device.now.names[entry.path().filename()] = named.st_ino;
    }
  } else {
    std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
    bytes.resize(static_cast<std::size_t>(::pread(fd, bytes.data(), bytes.size(), 0)));
    device.now.contents[about.st_ino] = std::move(bytes);
  }
  if (device.writer != nullptr) device.history.emplace_back(device.writer->committed(), device.now);
}

}  // namespace

extern "C" {
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (kernel.opens_left == 0) {
    kernel.opens_left = -1;
    ++kernel.fired;
    errno = EMFILE;
    return -1;
  }
  if (kernel.opens_left > 0) --kernel.opens_left;
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return admitted() ? syscall(SYS_pwrite64, fd, data, part_of(size), offset) : -1;
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  if (!admitted()) return -1;
  if (kernel.bumpy) return syscall(SYS_pwrite64, fd, parts->iov_base, part_of(parts->iov_len), offset);
  return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
int ftruncate(int fd, off_t size) noexcept {
  return admitted() ? static_cast<int>(syscall(SYS_ftruncate, fd, size)) : -1;
}
int fsync(int fd) { return admitted() ? (bring_to_device(fd), 0) : -1; }
int fdatasync(int fd) { return admitted() ? (bring_to_device(fd), 0) : -1; }
int aio_fsync(int, aiocb* request) noexcept { return bring_to_device(request->aio_fildes), 0; }
int aio_error(const aiocb*) noexcept { return kernel.bumpy || admitted() ? 0 : errno; }  // no EINTR there
ssize_t aio_return(aiocb*) noexcept { return 0; }
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (!kernel.bumpy && !admitted()) return -1;  // a rename is not interrupted
  return static_cast<int>(syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}
}

namespace {

constexpr int tasks = 60;

std::string piece(int i) {
  return std::to_string(i) + std::string(std::size_t(i * 997 % 3000), char('a' + i % 26));
}

const std::string& whole() {
  static const std::string all = [] {
    std::string text;
    for (int i = 0; i < tasks; ++i) text += piece(i);
    return text;
  }();
  return all;
}

/// What became of one run of the program.
struct outcome {
  int error = 0;                ///< of the exception; 0: none
  std::uint64_t committed = 0;  ///< acknowledged before the stream ended
  std::uint64_t spilled = 0;
};

/// Appends all pieces `times` times, the first task, if `late`, so late that others are spilled.
outcome append_all(weft::runtime& rt, const std::string& path, const weft::append_options& o, int times = 1,
                   bool late = true) {
  outcome r;
  std::atomic<int> others{0};  // fork may throw while tasks that were forked before still run
  try {
    weft::append_file file(path, o);
    try {
      rt.run(
          [times, late, &others](weft::append out) {
            for (int i = 0; i < tasks * times; ++i)
              weft::fork(
                  [i, late, &others](weft::append to) {
                    for (int n = 0; late && i == 0 && others < tasks / 2 && n < 2000; ++n) ::usleep(5);
                    to.write(piece(i % tasks));
                    ++others;
                  },
                  out);
            weft::sync();
          },
          file);
      r.committed = file.committed();
      r.spilled = file.spilled();
      file.close();
    } catch (const std::system_error& e) {
      r.error = e.code().value();
      r.committed = file.committed();
      try {
        file.close();
        r.error = -1;  // a stream that has failed is not published
      } catch (const std::system_error& again) {
        if (again.code() != e.code()) r.error = -2;
      }
    }
  } catch (const std::system_error& e) {
    r.error = e.code().value();
  }
  return r;
}

/// Recovers, and compares what is left with the stream; `promised` bytes must be there.
void check_rest(const std::string& path, std::uint64_t promised, int times = 1) {
  std::string kept;
  try {
    weft::recover(path);
    weft::append_reader reader(path);
    kept.resize(reader.size());
    reader.pread(std::as_writable_bytes(std::span(kept)), 0);
  } catch (const weft::error& e) {
    INFO(e.what());
    REQUIRE(promised == 0);
    return;
  }
  REQUIRE(kept.size() >= promised);
  std::string expected;
  for (int i = 0; i < times; ++i) expected += whole();
  REQUIRE(kept == expected.substr(0, kept.size()));
}

weft::append_options small(weft::append_layout layout, bool durable) {
  return {.layout = layout, .memory = 16384, .buffer = 4096, .commit_every = 8192, .durable = durable};
}

}  // namespace

TEST_CASE("the n-th call fails, for every n: an exception says so, and what was committed can be recovered") {
  std::uint64_t faults = 0, spilled = 0, kept_after_failure = 0;
  weft::runtime rt({.workers = 3});
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented})
    for (const bool durable : {false, true})
      for (const int error : {EIO, ENOSPC}) {
        long fired = 1;
        for (long n = 0; fired != 0; ++n) {
          INFO("call " << n << ", error " << error << ", durable " << durable);
          const weft_test::scratch dir;
          reset();
          kernel.error = error;
          kernel.for_ever = error == ENOSPC;  // the device stays full
          kernel.until_failure = n;
          const outcome r = append_all(rt, dir / "out", small(layout, durable));
          fired = kernel.fired;
          reset();
          spilled += r.spilled;
          faults += fired != 0;
          kept_after_failure += fired != 0 && r.committed > 0;
          REQUIRE(r.error == (fired != 0 ? error : 0));
          if (std::filesystem::exists(dir / "out")) {  // only the directory was not synchronised
            weft::append_reader reader(dir / "out");
            reader.verify();
            REQUIRE(reader.size() == whole().size());
          }
          check_rest(dir / "out", fired != 0 ? r.committed : whole().size());
        }
      }
  weft_test::figure("stream_faults", faults);
  CHECK(faults > 100);
  CHECK(spilled > 0);
  CHECK(kept_after_failure > 0);
}

TEST_CASE("where a descriptor is missing, for the n-th open file, the old stream or the new one is whole") {
  weft::runtime rt({.workers = 1});
  const auto write = [&](const std::string& path, weft::append_layout layout, const std::string& text) {
    weft::append_file file(path, {.layout = layout, .overwrite = true});
    rt.run([&](weft::append out) { out.write(text); }, file);
    file.close();
  };
  const auto bytes_of = [](const std::string& path) {
    const weft::append_reader reader(path);
    std::string bytes(reader.size(), '\0');
    reader.pread(std::as_writable_bytes(std::span(bytes)), 0);
    return bytes;
  };
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented}) {
    long refused = 1, points = -1;
    for (long n = 0; refused != 0; ++n, ++points) {
      INFO("open file " << n << ", segmented " << (layout == weft::append_layout::segmented));
      const weft_test::scratch dir;
      write(dir / "s", weft::append_layout::segmented, "old");
      reset();
      kernel.opens_left = n;
      bool failed = false;
      try {
        write(dir / "s", layout, "new");
      } catch (const std::system_error& e) {
        failed = true;
        CHECK(e.code().value() == EMFILE);
      }
      refused = kernel.fired;
      kernel.opens_left = -1;
      CHECK(failed == (refused != 0));
      const std::string left = bytes_of(dir / "s");
      CHECK((left == "new" || (failed && left == "old")));
      write(dir / "s", layout, "newest");
      CHECK(bytes_of(dir / "s") == "newest");
      const std::filesystem::directory_iterator names(dir.path());
      CHECK(std::distance(begin(names), end(names)) == (layout == weft::append_layout::plain ? 1 : 2));
    }
    CHECK(points >= 5);
  }
}

TEST_CASE("a power failure leaves what was committed durably, whenever it comes") {
  constexpr int times = 3;
  std::uint64_t failures = 0;
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented})
    for (const unsigned workers : {1u, 3u}) {
      weft::runtime rt({.workers = workers});
      const weft_test::scratch dir;
      {
        device.recording = true;
        weft::append_file file(dir / "out", small(layout, true));
        device.writer = &file;
        rt.run(
            [](weft::append out) {
              for (int i = 0; i < tasks * times; ++i)
                weft::fork([i](weft::append to) { to.write(piece(i % tasks)); }, out);
            },
            file);
        const std::lock_guard hold(device.mutex);
        device.recording = false;
        device.writer = nullptr;
        REQUIRE(file.committed() > 0);
      }
      std::uint64_t most = 0;
      for (const auto& [committed, image] : std::exchange(device.history, {})) {
        const weft_test::scratch after;
        for (const auto& [name, inode] : image.names) {
          const auto found = image.contents.find(inode);
          std::ofstream(after / name, std::ios::binary)
              << (found == image.contents.end() ? std::string() : found->second);
        }
        check_rest(after / "out", committed, times);
        most = std::max(most, committed);
        ++failures;
      }
      device.now = {};
      CHECK(most > 0);
    }
  weft_test::figure("power_failures", failures);
}

TEST_CASE("interrupted and short calls change nothing") {
  weft::runtime rt({.workers = 3});
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented})
    for (int round = 0; round < 5; ++round) {
      const weft_test::scratch dir;
      reset();
      kernel.bumpy = true;
      const outcome r = append_all(rt, dir / "out", small(layout, true));
      const long fired = kernel.fired;
      reset();
      CHECK(r.error == 0);
      CHECK(fired > 10);
      check_rest(dir / "out", whole().size());
    }
}

TEST_CASE("a limit on the size of files is an exception, no signal, and no loss of what was committed") {
  constexpr int times = 20;
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented}) {
    const weft_test::scratch dir;
    const auto child = weft_test::run_in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{300'000, 300'000};
      setrlimit(RLIMIT_FSIZE, &limit);
      weft::runtime rt({.workers = 2});
      const outcome r = append_all(rt, dir / "out", small(layout, false), times);
      std::printf("%d %llu", r.error, static_cast<unsigned long long>(r.committed));
    });
    INFO(child.output);
    REQUIRE(child.exit_code == 0);
    int error = 0;
    unsigned long long committed = 0;
    REQUIRE(std::sscanf(child.output.c_str(), "%d %llu", &error, &committed) == 2);
    CHECK(error == EFBIG);
    CHECK_FALSE(std::filesystem::exists(dir / "out"));
    check_rest(dir / "out", committed, times);
  }
}

TEST_CASE("a full file system is an exception, and what was committed is kept") {
  constexpr int times = 50, no_mount = 77;
  const unsigned user = getuid(), group = getgid();
  for (const auto layout : {weft::append_layout::plain, weft::append_layout::segmented})
    for (const unsigned workers : {1u, 2u}) {
      const weft_test::scratch dir;
      const auto child = weft_test::run_in_child([&] {
        const auto note = [](const char* path, const std::string& text) { std::ofstream(path) << text; };
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
          note("/proc/self/setgroups", "deny");
          note("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
          note("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
        } else if (unshare(CLONE_NEWNS) != 0) {
          _exit(no_mount);
        }
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        if (mount("small", (dir / "").c_str(), "tmpfs", 0, "size=1m") != 0) _exit(no_mount);
        outcome r;
        {
          weft::runtime rt({.workers = workers});
          r = append_all(rt, dir / "out", small(layout, false), times, false);
        }
        std::uint64_t kept = 0;
        try {
          kept = weft::recoverable(dir / "out").bytes;
        } catch (const weft::error&) {  // there is nothing to recover
        }
        std::printf("%d %d %llu %llu", r.error, std::filesystem::exists(dir / "out"),
                    static_cast<unsigned long long>(r.committed), static_cast<unsigned long long>(kept));
      });
      if (child.exit_code == no_mount) {
        WARN("skipped: no file system can be mounted here");
        continue;
      }
      INFO(child.output);
      REQUIRE(child.exit_code == 0);
      int error = 0, published = 0;
      unsigned long long committed = 0, kept = 0;
      REQUIRE(std::sscanf(child.output.c_str(), "%d %d %llu %llu", &error, &published, &committed, &kept) ==
              4);
      CHECK(error == ENOSPC);
      CHECK(published == 0);
      CHECK(kept >= committed);
      // With two workers what waits for the first task's bytes may have filled the file system alone, and the
      // few segments of a segmented stream may all be in an index that has no room either.
      if (layout == weft::append_layout::plain && workers == 1) CHECK(kept > 0);
    }
}
