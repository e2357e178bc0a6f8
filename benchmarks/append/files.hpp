// SPDX-License-Identifier: BSL-1.0
// Files of a run: where they are, plain ways to write them, and what tells whether their bytes are right.
#pragma once

#include "outcome.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace weft_bench {

/// The folder for all files of this program's runs: made when the program starts, below the directory that
/// BENCH_APPEND_DIR names or the usual one for temporary files, and removed when it ends.
class scratch_folder {
 public:
  scratch_folder() {
    const char* set = std::getenv("BENCH_APPEND_DIR");
    std::string name =
        (set != nullptr ? std::filesystem::path(set) : std::filesystem::temp_directory_path()) /
        "weft-append-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ / name; }
  /// Removes what a run has left, but what `kept` says.
  template <class Kept>
  void clean(Kept kept) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (!kept(entry.path().filename().string())) std::filesystem::remove(entry.path());
  }

 private:
  pid_t owner_ = getpid();
  std::filesystem::path path_;
};

inline const scratch_folder scratch;

[[noreturn]] inline void fail(const char* what, const std::string& path) {
  throw std::system_error(errno, std::generic_category(), std::string(what) + ' ' + path);
}

/// A file opened for writing.
class descriptor {
 public:
  explicit descriptor(std::string path, int flags = O_WRONLY | O_CREAT | O_TRUNC) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("open", path_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  void write(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd_, data, size);
      if (n < 0 && errno != EINTR) fail("write", path_);
      if (n <= 0) continue;
      data += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  /// Reads until `size` bytes are there or the file ends.
  std::size_t read(char* data, std::size_t size, std::uint64_t offset) const {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t n = ::pread(fd_, data + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno != EINTR) fail("read", path_);
      if (n == 0) break;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    return done;
  }
  void synchronise() {
    if (fdatasync(fd_) != 0) fail("fdatasync", path_);
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("close", path_);
  }
  int number() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

/// Writes through a buffer of a megabyte.
class buffered_file {
 public:
  explicit buffered_file(const std::string& path, int flags = O_WRONLY | O_CREAT | O_TRUNC,
                         std::uint64_t from = 0)
      : to_(path, flags), buffer_(new char[size]) {
    if (from != 0 && ::lseek(to_.number(), static_cast<off_t>(from), SEEK_SET) < 0) fail("seek", path);
  }
  void append(const char* data, std::size_t count) {
    while (count > 0) {
      const std::size_t n = std::min(count, size - used_);
      std::memcpy(buffer_.get() + used_, data, n);
      used_ += n;
      data += n;
      count -= n;
      if (used_ == size) flush();
    }
  }
  void append(std::string_view text) { append(text.data(), text.size()); }
  void flush() { to_.write(buffer_.get(), std::exchange(used_, 0)); }
  void close() {
    flush();
    to_.close();
  }

 private:
  static constexpr std::size_t size = std::size_t{1} << 20;
  descriptor to_;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
};

/// A number that depends on all bytes and their order; how they are cut into calls does not matter.
class digest {
 public:
  void add(const char* data, std::size_t count) {
    length_ += count;
    while (count > 0) {
      if (held_ == 0 && count >= sizeof word_) {
        for (; count >= sizeof word_; data += sizeof word_, count -= sizeof word_) {
          std::memcpy(&word_, data, sizeof word_);
          mix_();
        }
        continue;
      }
      reinterpret_cast<char*>(&word_)[held_++] = *data++;
      --count;
      if (held_ == sizeof word_) {
        mix_();
        held_ = 0;
      }
    }
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add_file(const std::string& path) {
    const descriptor in(path, O_RDONLY);
    std::vector<char> piece(std::size_t{1} << 20);
    std::uint64_t at = 0;
    while (const std::size_t n = in.read(piece.data(), piece.size(), at)) {
      add(piece.data(), n);
      at += n;
    }
  }
  long long value() {
    std::memset(reinterpret_cast<char*>(&word_) + held_, 0, sizeof word_ - held_);
    mix_();
    word_ = length_;
    mix_();
    return static_cast<long long>(state_ >> 1);
  }

 private:
  void mix_() {
    state_ = (state_ ^ word_) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 29;
  }
  std::uint64_t state_ = 1, word_ = 0, length_ = 0;
  std::size_t held_ = 0;
};

inline long long digest_of(const std::string& path) {
  digest d;
  d.add_file(path);
  return d.value();
}

/// Where one worker is measured, keeps the caller and the threads that it makes on the processor it is on.
/// Else the worker would be on another one than the thread that removed the files before, and so get their
/// pages from another cache than the serial program does, which costs a fifth.
class one_processor {
 public:
  explicit one_processor(unsigned workers) {
    if (workers != 1 || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
    kept_ = sched_setaffinity(0, sizeof here, &here) == 0;
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() {
    if (kept_) sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool kept_ = false;
};

/// Removes a run's files when the run ends.
class cleaner {
 public:
  cleaner() = default;
  cleaner(const cleaner&) = delete;
  cleaner& operator=(const cleaner&) = delete;
  ~cleaner() {
    try {
      scratch.clean([](const std::string& name) { return name.starts_with("keep-"); });
    } catch (const std::exception&) {
      // The whole folder is removed at the end.
    }
  }
};

}  // namespace weft_bench
