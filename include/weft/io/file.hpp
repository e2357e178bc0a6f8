// SPDX-License-Identifier: BSL-1.0
// A descriptor with its path: positioned reads and writes that are never short, and the steps to durability.
#pragma once

#include <weft/io/failure.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace weft::inline WEFT_ABI::io {

/// Owns a descriptor; move-only. *Throws*: whatever fails throws std::system_error that names the operation,
/// the path and, where there is one, the offset. *Suspends*: never, but the thread blocks as the kernel does.
/// *Thread safety*: positioned reads and writes from any thread; create, move and close by one.
class file {
 public:
  file() noexcept = default;
  /// Takes over `descriptor`; `path` is for messages and for the directory.
  explicit file(int descriptor, std::string path) noexcept
      : descriptor_(descriptor), path_(std::move(path)) {}
  file(file&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  file& operator=(file&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    path_.swap(other.path_);
    return *this;
  }
  /// Closes in silence: whoever needs to know of errors calls close().
  ~file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// A new file, open for reading and writing; an existing one is emptied if `overwrite`, and refused
  /// (EEXIST) if not.
  static file create(const std::string& path, bool overwrite, mode_t mode = 0666) {
    return open_(path, O_RDWR | O_CREAT | (overwrite ? O_TRUNC : O_EXCL), mode, "create");
  }
  /// An existing file, or whatever has that name; a pipe is not waited for.
  static file open_read(const std::string& path) { return open_(path, O_RDONLY | O_NONBLOCK, 0, "open"); }
  /// The same, for reading and writing.
  static file open_write(const std::string& path) {
    return open_(path, O_RDWR | O_NONBLOCK, 0, "open for writing");
  }
  /// With flags of open(2).
  static file open_path(const std::string& path, int flags) { return open_(path, flags, 0, "open"); }

  /// The same file under another path, for messages.
  file renamed(std::string path) && noexcept { return file(std::exchange(descriptor_, -1), std::move(path)); }

  int descriptor() const noexcept { return descriptor_; }
  const std::string& path() const noexcept { return path_; }
  explicit operator bool() const noexcept { return descriptor_ >= 0; }

  /// Writes all bytes. *Throws*: as the class; what was written before the failure stays.
  void write_at(const void* data, std::size_t size, std::uint64_t offset) {
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = ::pwrite(descriptor_, from, size, static_cast<off_t>(offset));
      const std::size_t done = written_(n, offset);
      from += done;
      size -= done;
      offset += done;
    }
  }

  /// Writes the parts one behind the other, as many at once as the kernel takes. The caller's array stays as
  /// it is.
  void write_at(std::span<const iovec> parts, std::uint64_t offset) {
    constexpr std::size_t most_at_once = 256;  // below IOV_MAX, and 4 KiB of stack are cheap on every stack
    iovec batch[most_at_once];
    std::size_t skip = 0;  // bytes of the first part that are written already
    while (!parts.empty()) {
      const std::size_t count = std::min(parts.size(), most_at_once);
      std::copy_n(parts.begin(), count, batch);
      batch[0].iov_base = static_cast<char*>(batch[0].iov_base) + skip;
      batch[0].iov_len -= skip;
      std::size_t wanted = 0;
      for (std::size_t i = 0; i < count; ++i) wanted += batch[i].iov_len;
      if (wanted > 0) {
        const ssize_t n = ::pwritev(descriptor_, batch, static_cast<int>(count), static_cast<off_t>(offset));
        const std::size_t done = written_(n, offset);
        offset += done;
        skip += done;
      }
      // An empty part is passed over too, so that parts which are all empty come to an end.
      while (!parts.empty() && skip >= parts.front().iov_len) {
        skip -= parts.front().iov_len;
        parts = parts.subspan(1);
      }
    }
  }

  /// *Returns*: the bytes read: `size`, or fewer at the end of the file.
  std::size_t read_at(void* data, std::size_t size, std::uint64_t offset) const {
    auto* to = static_cast<char*>(data);
    std::size_t got = 0;
    while (got < size) {
      const ssize_t n = ::pread(descriptor_, to + got, size - got, static_cast<off_t>(offset + got));
      if (n == 0) break;
      if (n < 0) {
        if (errno == EINTR) continue;
        fail(errno, "read", path_, offset + got);
      }
      got += static_cast<std::size_t>(n);
    }
    return got;
  }

  struct stat about() const {
    struct stat found;
    if (::fstat(descriptor_, &found) != 0) fail(errno, "ask about", path_);
    return found;
  }
  std::uint64_t size() const { return static_cast<std::uint64_t>(about().st_size); }
  /// Whether it is an ordinary file: not a directory, pipe or device.
  bool regular() const { return S_ISREG(about().st_mode); }
  /// Whether `other` is about this file, under whatever name.
  bool same_as(const struct stat& other) const {
    const struct stat own = about();
    return own.st_ino == other.st_ino && own.st_dev == other.st_dev;
  }
  /// When it was made, in nanoseconds since 1970; 0 where the file system does not keep that.
  std::uint64_t birth() const {
    struct statx all;
    if (::statx(descriptor_, "", AT_EMPTY_PATH, STATX_BTIME, &all) != 0 || (all.stx_mask & STATX_BTIME) == 0)
      return 0;
    return static_cast<std::uint64_t>(all.stx_btime.tv_sec) * 1'000'000'000u + all.stx_btime.tv_nsec;
  }

  /// Who may access it shall be who may access `model`: takes over the mode, and owner and group as far as
  /// permitted. Where the group cannot be kept, the new one gets no more than everybody has.
  void share_access_of(const struct stat& model) {
    const struct stat own = about();
    mode_t mode = model.st_mode & 0777;
    const bool owner_kept = own.st_uid == model.st_uid || ::fchown(descriptor_, model.st_uid, gid_t(-1)) == 0;
    const bool group_kept = own.st_gid == model.st_gid || ::fchown(descriptor_, uid_t(-1), model.st_gid) == 0;
    static_cast<void>(owner_kept);  // without it the file is the caller's
    if (!group_kept) mode = (mode & 0707) | (mode & 07) << 3;
    if (::fchmod(descriptor_, mode) != 0 && errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
      fail(errno, "set the mode of", path_);
  }

  void resize(std::uint64_t size) {
    while (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
      if (errno != EINTR) fail(errno, "resize", path_, size);
  }

  /// Reserves room on the device; the size stays. *Returns*: false where the file system cannot do that.
  /// *Throws*: as the class, in particular when the device is full.
  bool allocate(std::uint64_t offset, std::uint64_t size) {
    while (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size)) != 0) {
      if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV || errno == ESPIPE) return false;
      if (errno != EINTR) fail(errno, "reserve room in", path_, offset);
    }
    return true;
  }

  /// The bytes, and what is needed to read them again, are on the device on return. A failure is final: after
  /// it the kernel takes the lost bytes for written, so another attempt proves nothing.
  void sync_data() {
    while (::fdatasync(descriptor_) != 0)
      if (errno != EINTR) fail(errno, "bring to the device", path_);
  }
  /// The same with all that the file system knows of the file.
  void sync() {
    while (::fsync(descriptor_) != 0)
      if (errno != EINTR) fail(errno, "bring to the device", path_);
  }

  /// *Returns*: false if somebody else holds the lock. Where files cannot be locked, nobody is kept out.
  bool try_lock() {
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno == EINVAL || errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return true;
      if (errno != EINTR) fail(errno, "lock", path_);
    }
    return true;
  }

  /// *Effects*: the descriptor is gone in any case, also after a failure.
  void close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) fail(errno, "close", path_);
  }

 private:
  static file open_(const std::string& path, int flags, mode_t mode, const char* operation) {
    file opened(-1, path);
    do {
      opened.descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (!opened && errno == EINTR);
    if (!opened) fail(errno, operation, path);
    return opened;
  }

  /// What a call of the pwrite family has done; 0 after a signal, which is not a failure.
  std::size_t written_(ssize_t n, std::uint64_t offset) const {
    if (n > 0) return static_cast<std::size_t>(n);
    if (n < 0 && errno == EINTR) return 0;
    // A device that takes nothing and reports nothing would be asked for ever.
    fail(n == 0 ? EIO : errno, "write", path_, offset);
  }

  int descriptor_ = -1;
  std::string path_;
};

}  // namespace weft::inline WEFT_ABI::io
