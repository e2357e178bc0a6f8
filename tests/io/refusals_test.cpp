// SPDX-License-Identifier: BSL-1.0
// Kernels and file systems that know less than others, or fail where they hardly ever do: one of this
// program's own system calls gives the answers of a test.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/io/background_sync.hpp>
#include <weft/io/directory.hpp>
#include <weft/io/file.hpp>

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
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

/// The answers that calls of one function get, the first one first; afterwards the kernel answers.
struct {
  std::string_view call;
  std::vector<int> errors;
  std::size_t next = 0;
  std::string_view also;  // refused each time, with `also_error`
  int also_error = 0;
} script;

/// *Returns*: whether the call fails.
bool refuses(std::string_view call) {
  if (script.also == call) {
    errno = script.also_error;
    return true;
  }
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
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool unnamed = (flags & __O_TMPFILE) == __O_TMPFILE;
  if (refuses(unnamed ? "O_TMPFILE" : "openat")) return -1;
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}
int access(const char* path, int mode) noexcept {
  return refuses("access") ? -1 : static_cast<int>(syscall(SYS_access, path, mode));
}
int fchown(int fd, uid_t user, gid_t group) noexcept {
  return refuses("fchown") ? -1 : static_cast<int>(syscall(SYS_fchown, fd, user, group));
}
int fchmod(int fd, mode_t mode) noexcept {
  return refuses("fchmod") ? -1 : static_cast<int>(syscall(SYS_fchmod, fd, mode));
}
int fsync(int fd) { return refuses("fsync") ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
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
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  if (refuses("linkat")) return -1;
  return static_cast<int>(syscall(SYS_linkat, from_at, from, to_at, to, flags));
}
int aio_fsync(int, aiocb*) noexcept { return refuses("aio_fsync") ? -1 : 0; }
int aio_error(const aiocb*) noexcept { return refuses("aio_error") ? errno : 0; }
int aio_suspend(const aiocb* const*, int, const timespec*) { return 0; }
ssize_t aio_return(aiocb*) noexcept { return 0; }
}

namespace {

using weft::io::directory;
using weft::io::file;
using weft::io::unnamed_file;
using weft_test::contains;
using weft_test::scratch;
using weft_test::slurp;
using weft_test::spill;

/// What `f` throws where calls of `call` get these answers; 0: nothing. All answers must have been given.
template <class F>
int thrown(std::string_view call, std::vector<int> errors, F&& f) {
  script.call = call;
  script.errors = std::move(errors);
  script.next = 0;
  int code = 0;
  try {
    f();
  } catch (const std::system_error& e) {
    code = e.code().value();
    CHECK_THAT(e.what(), contains("cannot "));
  }
  CHECK(script.next == script.errors.size());
  script = {.call = {}, .errors = {}, .also = script.also, .also_error = script.also_error};
  return code;
}

template <class F>
int failure_code(F&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code().value();
  }
  return 0;
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

TEST_CASE("other failures are reported") {
  const scratch here;
  file f = file::create(here / "f", false);
  CHECK(thrown("open", {EMFILE}, [&] { file::open_read(here / "f"); }) == EMFILE);
  CHECK(thrown("fstat", {EIO}, [&] { f.size(); }) == EIO);
  CHECK(thrown("fstat", {EIO}, [&] { f.regular(); }) == EIO);
  CHECK(thrown("ftruncate", {EINTR, EIO}, [&] { f.resize(1); }) == EIO);
  CHECK(thrown("fallocate", {ENOSPC}, [&] { f.allocate(0, 4096); }) == ENOSPC);
  CHECK(thrown("flock", {EIO}, [&] { f.try_lock(); }) == EIO);
  const directory in(here / "f");
  CHECK(thrown("openat", {EACCES}, [&] { in.sync(); }) == EACCES);
  CHECK(thrown("fsync", {EINTR, EIO}, [&] { in.sync(); }) == EIO);
  CHECK(thrown("fsync", {EINVAL}, [&] { in.sync(); }) == 0);  // the file system cannot
  CHECK(thrown("openat", {EINTR, EACCES}, [&] { in.open("f", O_RDONLY); }) == EACCES);
  CHECK(thrown("openat", {ENOENT}, [&] { CHECK_FALSE(in.open_if_exists("f", O_RDONLY)); }) == 0);
  CHECK(thrown("openat", {EACCES}, [&] { CHECK(in.names_with("").empty()); }) == 0);
  CHECK(thrown("openat", {EMFILE}, [&] { in.names_with(""); }) == EMFILE);
  CHECK(thrown("O_TMPFILE", {ENOSPC}, [&] { unnamed_file(in, "f", 0600); }) == ENOSPC);
  CHECK(thrown("close", {EIO}, [&] { f.close(); }) == EIO);
  CHECK_FALSE(f);
}

TEST_CASE("a name is given without replacing another also where the kernel's rename cannot refuse") {
  const scratch here;
  const directory in(here / "new");
  const auto rename = [&] { in.rename("new", "out", false); };
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    spill(here / "new", "new");
    CHECK(thrown("renameat2", {error}, rename) == 0);
    CHECK(slurp(here / "out") == "new");
    spill(here / "new", "newer");
    CHECK(thrown("renameat2", {error}, rename) == EEXIST);
    CHECK(slurp(here / "out") == "new");
    CHECK(slurp(here / "new") == "newer");
    in.remove("out");
  }
  CHECK(thrown("renameat2", {EIO}, rename) == EIO);
}

TEST_CASE("and where there are no links either") {
  const scratch here;
  const directory in(here / "new");
  const auto rename = [&] { in.rename("new", "out", false); };
  script.also = "renameat2";
  script.also_error = EINVAL;
  spill(here / "new", "new");
  CHECK(thrown("linkat", {EPERM}, rename) == 0);
  CHECK(slurp(here / "out") == "new");
  CHECK_FALSE(in.has("new"));
  spill(here / "new", "newer");
  CHECK(thrown("linkat", {EPERM}, rename) == EEXIST);
  CHECK(slurp(here / "out") == "new");
  CHECK(thrown("linkat", {ENOENT}, rename) == ENOENT);
  script = {};
}

TEST_CASE("where every file needs a name, it has one that nobody else uses until it is published") {
  const scratch here;
  const directory in(here / "x");
  for (const auto& [call, error] :
       {std::pair("O_TMPFILE", EOPNOTSUPP), std::pair("O_TMPFILE", EISDIR), std::pair("access", ENOENT)}) {
    for (const bool replace : {false, true}) {
      INFO(call << ' ' << replace);
      std::optional<unnamed_file> file;
      CHECK(thrown(call, {error}, [&] { file.emplace(in, "x", 0644); }) == 0);
      CHECK(in.names_with("x.weft-").size() == 1);
      file->content().write_at("new", 3, 0);
      if (replace) spill(here / "x", "old");
      CHECK(file->publish("x", replace).path() == here / "x");
      CHECK(slurp(here / "x") == "new");
      CHECK(failure_code([&] {
              CHECK(thrown(call, {error}, [&] { file.emplace(in, "x", 0644); }) == 0);
              CHECK_FALSE(file->publish_if_free("x"));
              file->publish("x", false);
            }) == EEXIST);
      file.reset();
      CHECK(in.names_with("x.weft-").empty());
      in.remove("x");
    }
    CHECK(thrown(call, {error}, [&] { unnamed_file(in, "x", 0600).keep_unnamed().write_at("a", 1, 0); }) ==
          0);
    CHECK(in.names_with("x").empty());
  }
}

TEST_CASE("where owner, group or mode cannot be kept, nobody gets more than they had") {
  const scratch here;
  file model = file::create(here / "model", false), other = file::create(here / "other", false);
  struct stat foreign = model.about();
  foreign.st_mode = S_IFREG | 0764;
  ++foreign.st_gid;
  CHECK(thrown("fchown", {EPERM}, [&] { other.share_access_of(foreign); }) == 0);
  CHECK((other.about().st_mode & 07777) == 0744);  // the group's rights were another group's
  CHECK(other.about().st_gid == model.about().st_gid);
  ++foreign.st_uid;
  CHECK(thrown("fchown", {EPERM, EPERM}, [&] { other.share_access_of(foreign); }) == 0);
  CHECK(thrown("fchmod", {EPERM}, [&] { other.share_access_of(model.about()); }) == 0);
  CHECK(thrown("fchmod", {EIO}, [&] { other.share_access_of(model.about()); }) == EIO);
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
