// SPDX-License-Identifier: BSL-1.0
// Names of files: publishing under a name for good, removing, asking.
#pragma once

#include <weft/io/failure.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace weft::inline WEFT_ABI::io {

/// Whether something has that name. *Throws*: std::system_error if it cannot be known (the same below).
inline bool exists(const std::string& path) {
  struct stat about;
  if (::lstat(path.c_str(), &about) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail(errno, "ask for", path);
  return false;
}

/// Makes the names in the directory of `path` durable.
inline void sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) fail(errno, "open", directory);
  int failure;
  do {
    failure = ::fsync(opened) == 0 ? 0 : errno;
  } while (failure == EINTR);
  ::close(opened);
  // Some file systems know no fsync of a directory (EINVAL): with them a name is as durable as it gets.
  if (failure != 0 && failure != EINVAL && failure != EROFS) fail(failure, "bring to the device", directory);
}

namespace detail {

/// A rename that fails with EEXIST rather than replace, for file systems without RENAME_NOREPLACE.
inline int rename_by_link(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str());
  if (errno == EEXIST || errno == ENOENT) return -1;
  // Without links nothing is atomic: somebody who makes the name at this moment loses the file.
  if (exists(to)) {
    errno = EEXIST;
    return -1;
  }
  return ::rename(from.c_str(), to.c_str());
}

}  // namespace detail

/// Gives a file another name in the same file system. *Throws*: std::system_error, with EEXIST if `to` exists
/// and not `replace`; the file then keeps its name.
inline void rename(const std::string& from, const std::string& to, bool replace) {
  int failed;
  if (replace) {
    failed = ::rename(from.c_str(), to.c_str());
  } else {
    failed = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
    if (failed != 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
      failed = detail::rename_by_link(from, to);
  }
  if (failed != 0) fail(errno, ("rename '" + from + "' to").c_str(), to);
}

/// The same, durable on return. *Requires*: the file's bytes are synchronised.
inline void rename_durably(const std::string& from, const std::string& to, bool replace) {
  rename(from, to, replace);
  sync_directory_of(to);
}

/// Removes a name; it is no failure if there is none.
inline void remove_if_exists(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(errno, "remove", path);
}

}  // namespace weft::inline WEFT_ABI::io
