// SPDX-License-Identifier: BSL-1.0
// Kernels and file systems that know less than others, or fail where they hardly ever do: one of this
// program's own system calls gives the answers of a test.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/io/background_sync.hpp>
#include <weft/io/file.hpp>
#include <weft/io/names.hpp>

#include <aio.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

/// The answers that calls of one function get, the first one first; afterwards the kernel answers.
struct {
  std::string_view call;
  std::vector<int> errors;
  std::size_t next = 0;
} script;

/// *Returns*: whether the call fails.
bool refuses(std::string_view call) {
  if (script.next == script.errors.size() || script.call != call) return false;
  errno = script.errors[script.next++];
  return true;
}

}  // namespace

extern "C" {
int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return refuses("open") ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int close(int fd) {
  const int done = static_cast<int>(syscall(SYS_close, fd));
  return refuses("close") ? -1 : done;
}
int fstat(int fd, struct stat* about) noexcept {
  return refuses("fstat") ? -1 : static_cast<int>(syscall(SYS_newfstatat, fd, "", about, AT_EMPTY_PATH));
}
int ftruncate(int fd, off_t size) noexcept {
  return refuses("ftruncate") ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, size));
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return refuses("fallocate") ? -1 : static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, size));
}
int fdatasync(int fd) { return refuses("fdatasync") ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int flock(int fd, int operation) noexcept {
  return refuses("flock") ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (refuses("renameat2")) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}
int link(const char* from, const char* to) noexcept {
  return refuses("link") ? -1 : static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int aio_fsync(int, aiocb*) noexcept { return refuses("aio_fsync") ? -1 : 0; }
int aio_error(const aiocb*) noexcept { return refuses("aio_error") ? errno : 0; }
int aio_suspend(const aiocb* const*, int, const timespec*) { return 0; }
ssize_t aio_return(aiocb*) noexcept { return 0; }
}

namespace {

using weft::io::file;
using weft_test::contains;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;

/// What `f` throws where calls of `call` get these answers; 0: nothing. All answers must have been given.
template <class F>
int thrown(std::string_view call, std::vector<int> errors, F&& f) {
  script = {call, std::move(errors)};
  int code = 0;
  try {
    f();
  } catch (const std::system_error& e) {
    code = e.code().value();
    CHECK_THAT(e.what(), contains("cannot "));
  }
  CHECK(script.next == script.errors.size());
  script = {};
  return code;
}

}  // namespace

TEST_CASE("calls that a signal interrupts are made again") {
  const scratch here;
  file f;
  CHECK(thrown("open", {EINTR, EINTR}, [&] { f = file::create(here / "f", false); }) == 0);
  CHECK(thrown("ftruncate", {EINTR}, [&] { f.resize(100); }) == 0);
  CHECK(f.size() == 100);
  CHECK(thrown("fallocate", {EINTR, EOPNOTSUPP}, [&] { CHECK_FALSE(f.allocate(0, 4096)); }) == 0);
  CHECK(thrown("fdatasync", {EINTR}, [&] { f.sync_data(); }) == 0);
  CHECK(thrown("flock", {EINTR}, [&] { CHECK(f.try_lock()); }) == 0);
  CHECK(thrown("close", {EINTR}, [&] { f.close(); }) == 0);  // Linux has closed it
  CHECK_FALSE(f);
}

TEST_CASE("what a file system cannot do is left out") {
  const scratch here;
  file f = file::create(here / "f", false);
  for (const int error : {EOPNOTSUPP, ENOSYS, ENODEV, ESPIPE})
    CHECK(thrown("fallocate", {error}, [&] { CHECK_FALSE(f.allocate(0, 4096)); }) == 0);
  for (const int error : {EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP})
    CHECK(thrown("flock", {error}, [&] { CHECK(f.try_lock()); }) == 0);
  CHECK(thrown("flock", {EWOULDBLOCK}, [&] { CHECK_FALSE(f.try_lock()); }) == 0);
}

TEST_CASE("only what has bytes is truncated") {
  const scratch here;
  script = {"ftruncate", {EIO}};
  file::create_locked(here / "f", true);
  file::create_locked(here / "f", true).write_at("a", 1, 0);
  CHECK(script.next == 0);
  CHECK(thrown("ftruncate", {EIO}, [&] { file::create_locked(here / "f", true); }) == EIO);
  CHECK(file::create_locked(here / "f", true).size() == 0);
}

TEST_CASE("other failures are reported") {
  const scratch here;
  file f = file::create(here / "f", false);
  CHECK(thrown("open", {EMFILE}, [&] { file::open_read(here / "f"); }) == EMFILE);
  CHECK(thrown("fstat", {EIO}, [&] { f.size(); }) == EIO);
  CHECK(thrown("fstat", {EIO}, [&] { f.regular(); }) == EIO);
  CHECK(thrown("ftruncate", {EINTR, EIO}, [&] { f.resize(1); }) == EIO);
  CHECK(thrown("fallocate", {ENOSPC}, [&] { f.allocate(0, 4096); }) == ENOSPC);
  CHECK(thrown("flock", {EIO}, [&] { f.try_lock(); }) == EIO);
  CHECK(thrown("open", {EACCES}, [&] { weft::io::sync_directory_of(here / "f"); }) == EACCES);
  CHECK(thrown("close", {EIO}, [&] { f.close(); }) == EIO);
  CHECK_FALSE(f);
}

TEST_CASE("a name is given without replacing another also where the kernel's rename cannot refuse") {
  const scratch here;
  const auto rename = [&] { weft::io::rename(here / "new", here / "out", false); };
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    spill(here / "new", "new");
    CHECK(thrown("renameat2", {error}, rename) == 0);
    CHECK(slurp(here / "out") == "new");
    spill(here / "new", "newer");
    CHECK(thrown("renameat2", {error}, rename) == EEXIST);
    CHECK(slurp(here / "out") == "new");
    CHECK(slurp(here / "new") == "newer");
    weft::io::remove_if_exists(here / "out");
  }
  CHECK(thrown("renameat2", {EIO}, rename) == EIO);
}

TEST_CASE("and where there are no links either") {
  const scratch here;
  spill(here / "new", "new");
  CHECK(thrown("link", {EPERM},
               [&] { CHECK(weft::io::detail::rename_by_link(here / "new", here / "out") == 0); }) == 0);
  CHECK(slurp(here / "out") == "new");
  CHECK_FALSE(weft::io::exists(here / "new"));
  spill(here / "new", "newer");
  CHECK(thrown("link", {EPERM}, [&] {
          CHECK(weft::io::detail::rename_by_link(here / "new", here / "out") == -1);
          CHECK(errno == EEXIST);
        }) == 0);
  CHECK(slurp(here / "out") == "new");
  CHECK(thrown("link", {ENOENT},
               [&] { CHECK(weft::io::detail::rename_by_link(here / "new", here / "out") == -1); }) == 0);
}

TEST_CASE("bytes are on the device at the end, or somebody hears of it") {
  const scratch here;
  file f = file::create(here / "f", false);
  const auto synchronise = [&] { weft::io::background_sync(f).finish(); };
  CHECK(thrown("aio_error", {EINPROGRESS, EINPROGRESS}, synchronise) == 0);
  CHECK(thrown("aio_error", {EINPROGRESS, EIO}, synchronise) == EIO);
  CHECK(thrown("aio_fsync", {EAGAIN}, synchronise) == 0);  // then by finish itself
  CHECK(thrown("aio_error", {EIO}, [&] { const weft::io::background_sync left(f); }) == 0);
}
