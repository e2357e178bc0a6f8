// SPDX-License-Identifier: BSL-1.0
// Files under a kernel that interrupts, writes too little, and fails: this program's own system calls do so.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/io/directory.hpp>

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

namespace {

struct {
  int interrupts = 0;    // so many calls in a row come to nothing
  std::size_t most = 0;  // bytes that one call transfers at most; 0: any
  int error = 0;         // of calls that begin at fail_at or behind
  std::uint64_t fail_at = 0;
  bool nothing = false;  // writes return 0
  int calls = 0;
  int failed_syncs = 0;
} kernel;

/// *Returns*: whether the call goes on.
bool admitted(off_t offset, ssize_t& result) {
  ++kernel.calls;
  if (kernel.interrupts > 0 && kernel.calls % (kernel.interrupts + 1) != 0) {
    errno = EINTR;
    result = -1;
    return false;
  }
  if (kernel.error != 0 && static_cast<std::uint64_t>(offset) >= kernel.fail_at) {
    errno = kernel.error;
    result = -1;
    return false;
  }
  return true;
}
std::size_t cut(std::size_t size) { return kernel.most == 0 ? size : std::min(size, kernel.most); }

}  // namespace

extern "C" {
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  ssize_t result = 0;
  if (!admitted(offset, result)) return result;
  if (kernel.nothing) return 0;
  return syscall(SYS_pwrite64, fd, data, cut(size), offset);
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  ssize_t result = 0;
  if (!admitted(offset, result)) return result;
  return syscall(SYS_pread64, fd, data, cut(size), offset);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  ssize_t result = 0;
  if (!admitted(offset, result)) return result;
  std::vector<char> all;
  for (int i = 0; i < count; ++i) {
    const auto* const from = static_cast<const char*>(parts[i].iov_base);
    all.insert(all.end(), from, from + parts[i].iov_len);
  }
  return syscall(SYS_pwrite64, fd, all.data(), cut(all.size()), offset);
}
int fsync(int fd) {
  if (kernel.failed_syncs-- > 0) {
    errno = kernel.error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
int fdatasync(int fd) { return fsync(fd); }
}

using weft::io::file;
using weft_test::contains;
using weft_test::scratch;
using weft_test::slurp;

namespace {

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i * i % 23);
  return bytes;
}

}  // namespace

TEST_CASE("interrupted and short calls are continued") {
  const scratch here;
  const std::string bytes = pattern(3001);
  for (const int interrupts : {0, 1, 3}) {
    for (const std::size_t most : {1u, 7u, 1000u, 0u}) {
      kernel = {.interrupts = interrupts, .most = most};
      file f = file::create(here / "f", true);
      f.write_at(bytes.data(), bytes.size(), 10);
      std::string text = bytes;
      std::vector<iovec> parts;
      for (std::size_t at = 0; at < text.size(); at += 100)
        parts.push_back({text.data() + at, std::min<std::size_t>(100, text.size() - at)});
      f.write_at(parts, 10 + bytes.size());
      std::string back(2 * bytes.size() + 50, '?');
      const std::size_t got = f.read_at(back.data(), back.size(), 10);
      REQUIRE(kernel.calls > (most == 1 ? 6000 : 2));
      kernel = {};
      REQUIRE(back.substr(0, got) == bytes + bytes);
      REQUIRE(slurp(here / "f") == std::string(10, '\0') + bytes + bytes);
    }
  }
}

TEST_CASE("a failure in the middle names its own offset, and what was written before stays") {
  const scratch here;
  const std::string bytes = pattern(100);
  file f = file::create(here / "f", true);
  for (const bool gather : {false, true}) {
    kernel = {.most = 30, .error = EIO, .fail_at = 60};
    try {
      if (gather) {
        std::string text = bytes;
        const iovec parts[] = {{text.data(), 50}, {text.data() + 50, 50}};
        f.write_at(parts, 0);
      } else {
        f.write_at(bytes.data(), bytes.size(), 0);
      }
      FAIL("written");
    } catch (const std::system_error& e) {
      CHECK(e.code() == std::errc::io_error);
      CHECK_THAT(e.what(), contains("at offset 60"));
    }
    kernel = {};
    CHECK(slurp(here / "f") == bytes.substr(0, 60));
  }
  kernel = {.most = 20, .error = EIO, .fail_at = 40};
  char back[100];
  try {
    f.read_at(back, sizeof back, 0);
    FAIL("read");
  } catch (const std::system_error& e) {
    CHECK_THAT(e.what(), contains("cannot read"));
    CHECK_THAT(e.what(), contains("at offset 40"));
  }
  kernel = {};
}

TEST_CASE("a write that comes to nothing does not go on for ever") {
  const scratch here;
  file f = file::create(here / "f", true);
  kernel = {.nothing = true};
  CHECK_THROWS_AS(f.write_at("x", 1, 0), std::system_error);
  kernel = {};
}

TEST_CASE("a failed synchronisation is reported, of files and of directories") {
  const scratch here;
  file f = file::create(here / "f", true);
  kernel = {.error = EIO, .failed_syncs = 1};
  CHECK_THROWS_AS(f.sync_data(), std::system_error);
  kernel = {.error = EIO, .failed_syncs = 1};
  CHECK_THROWS_AS(f.sync(), std::system_error);
  kernel = {.error = EIO, .failed_syncs = 1};
  CHECK_THROWS_AS(weft::io::directory(here / "f").sync(), std::system_error);
  kernel = {.error = EINTR, .failed_syncs = 2};
  f.sync();
  kernel = {.error = EINVAL, .failed_syncs = 1};  // a file system that cannot synchronise directories
  weft::io::directory(here / "f").sync();
  kernel = {};
}
