// SPDX-License-Identifier: BSL-1.0
// The calls that find, change and name files, as this program's own: a process that asks for it is slow
// between them, is killed before one of them, or finds a file system that can do less.
#pragma once

#include "support/random.hpp"

#include <aio.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <ctime>

namespace surroundings {

/// Set by a process before it uses weft.
struct kernel_settings {
  bool active = false;
  std::uint64_t seed = 0;
  unsigned slow = 0;   ///< one call in so many takes its time; 0: none
  long stall_at = -1;  ///< the call before which others have time for all they do; -1: none
  long die_at = -1;    ///< the call before which the process is killed; -1: none
  bool has_unnamed_files = true;
  bool has_exclusive_renames = true;
};
inline kernel_settings kernel;
inline std::atomic<long> kernel_calls{0};  // relaxed: a counter

inline void nap(std::uint64_t microseconds) {
  const timespec time{0, static_cast<long>(microseconds * 1000)};
  ::nanosleep(&time, nullptr);
}
inline void before_call() {
  if (!kernel.active) return;
  const long n = kernel_calls.fetch_add(1, std::memory_order_relaxed);
  if (n == kernel.die_at) ::kill(::getpid(), SIGKILL);
  if (n == kernel.stall_at) nap(1500);
  if (kernel.slow == 0) return;
  const std::uint64_t chance = weft_test::random(kernel.seed + static_cast<std::uint64_t>(n))();
  if (chance % kernel.slow == 0) nap((chance >> 32) % 200);
}

}  // namespace surroundings

extern "C" {
inline mode_t surroundings_mode(int flags, va_list rest) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}
int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = surroundings_mode(flags, rest);
  va_end(rest);
  surroundings::before_call();
  if ((flags & O_TMPFILE) == O_TMPFILE && !surroundings::kernel.has_unnamed_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = surroundings_mode(flags, rest);
  va_end(rest);
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int fstatat(int at, const char* path, struct stat* about, int flags) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_newfstatat, at, path, about, flags));
}
int flock(int fd, int how) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_flock, fd, how));
}
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_linkat, from_at, from, to_at, to, flags));
}
int unlinkat(int at, const char* path, int flags) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_unlinkat, at, path, flags));
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  surroundings::before_call();
  if (flags != 0 && !surroundings::kernel.has_exclusive_renames) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}
int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_renameat2, from_at, from, to_at, to, 0));
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  surroundings::before_call();
  return syscall(SYS_pwrite64, fd, data, size, offset);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  surroundings::before_call();
  return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
int ftruncate(int fd, off_t size) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}
int fchmod(int fd, mode_t mode) noexcept {
  surroundings::before_call();
  return static_cast<int>(syscall(SYS_fchmod, fd, mode));
}
int fsync(int) {  // the device is not what is tested
  surroundings::before_call();
  return 0;
}
int fdatasync(int) {
  surroundings::before_call();
  return 0;
}
int aio_fsync(int, aiocb*) noexcept { return 0; }
int aio_error(const aiocb*) noexcept { return 0; }
ssize_t aio_return(aiocb*) noexcept { return 0; }
}
