// SPDX-License-Identifier: BSL-1.0
// A descriptor with its path: positioned reads and writes that are never short, and the steps to durability.
#pragma once

#include <weft/io/failure.hpp>
#include <weft/io/names.hpp>  // exported: whoever publishes a file needs both

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
  /// As create(), and locked against others who do the same: a file that somebody still writes is refused
  /// (EBUSY) rather than emptied. The lock goes with the last copy of the descriptor, so also by kill -9.
  static file create_locked(const std::string& path, bool overwrite, mode_t mode = 0666) {
    file made = open_(path, O_RDWR | O_CREAT | (overwrite ? 0 : O_EXCL), mode, "create");
    if (!made.try_lock()) fail(EBUSY, "create", path);
    // An empty file stays as it is: ext4 starts to write what was truncated to nothing when that is closed.
    if (overwrite && made.size() != 0) made.resize(0);
    return made;
  }
  static file open_read(const std::string& path) { return open_(path, O_RDONLY, 0, "open"); }
  /// An existing file, for reading and writing.
  static file open_write(const std::string& path) { return open_(path, O_RDWR, 0, "open for writing"); }

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

  std::uint64_t size() const {
    struct stat about;
    if (::fstat(descriptor_, &about) != 0) fail(errno, "ask for the size of", path_);
    return static_cast<std::uint64_t>(about.st_size);
  }
  /// Whether it is an ordinary file: not a directory, pipe or device.
  bool regular() const {
    struct stat about;
    if (::fstat(descriptor_, &about) != 0) fail(errno, "ask for the kind of", path_);
    return S_ISREG(about.st_mode);
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
    int descriptor;
    do {
      descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) fail(errno, operation, path);
    return file(descriptor, path);
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
