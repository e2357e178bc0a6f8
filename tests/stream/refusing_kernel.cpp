// SPDX-License-Identifier: BSL-1.0
// A library that is preloaded into a program (LD_PRELOAD) and answers its system calls that change files.
// Environment:
//   REFUSING_FROM=<n>    the n-th call fails, the first one is 0
//   REFUSING_WITH=<e>    with this errno
//   REFUSING_FOR_EVER=1  and so do all after it
//   REFUSING_BUMPY=1     instead: every other call is interrupted, and writes take half
// It says so on the standard error stream when it has refused a call for the first time.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace {

long setting(const char* name, long otherwise) {
  const char* const set = std::getenv(name);
  return set != nullptr ? std::atol(set) : otherwise;
}

bool bumpy() {
  static const bool is = setting("REFUSING_BUMPY", 0) != 0;
  return is;
}
/// *Returns*: whether the call goes on.
bool admitted() {
  static const long from = setting("REFUSING_FROM", -1), with = setting("REFUSING_WITH", EIO);
  static const bool for_ever = setting("REFUSING_FOR_EVER", 0) != 0;
  static std::atomic<long> calls{0};
  static std::atomic<bool> told{false};
  const long n = calls++;
  if (bumpy() ? n % 2 != 0 : from < 0 || n < from || (n > from && !for_ever)) return true;
  if (!told.exchange(true)) {
    constexpr char words[] = "refused\n";
    if (::write(STDERR_FILENO, words, sizeof words - 1) < 0) std::abort();
  }
  errno = bumpy() ? EINTR : static_cast<int>(with);
  return false;
}
size_t part_of(size_t size) { return bumpy() ? (size + 1) / 2 : size; }

/// The function of this name that the program would have called, of the type of ours.
template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
int openat(int at, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_ACCMODE) != O_RDONLY && !admitted()) return -1;
  static auto* const real = next(&openat, "openat");
  return real(at, path, flags, mode);
}
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  static auto* const real = next(&linkat, "linkat");
  return bumpy() || admitted() ? real(from_at, from, to_at, to, flags) : -1;  // it is not interrupted
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  static auto* const real = next(&pwrite, "pwrite");
  return admitted() ? real(fd, data, part_of(size), offset) : -1;
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  static auto* const real = next(&pwritev, "pwritev");
  if (!admitted()) return -1;
  if (!bumpy()) return real(fd, parts, count, offset);
  const iovec first{parts->iov_base, part_of(parts->iov_len)};
  return real(fd, &first, 1, offset);
}
int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = next(&ftruncate, "ftruncate");
  return admitted() ? real(fd, size) : -1;
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static auto* const real = next(&renameat2, "renameat2");
  return bumpy() || admitted() ? real(from_at, from, to_at, to, flags) : -1;  // it is not interrupted
}
}
