// SPDX-License-Identifier: BSL-1.0
// The file of a trace: made when the runtime starts, under a name that no other trace of the process has.
#pragma once

#include <weft/base/config.hpp>
#include <weft/io/failure.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// An open file, empty at first.
class trace_file {
 public:
  /// `path`: "%p" stands for the number of the process; the second trace of a process under the same path
  /// gets ".2" before the extension, and so on.
  /// *Throws*: std::system_error with the path if it cannot be written.
  explicit trace_file(const std::string& path) : path_(own_path(path)) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) io::fail(errno, "write the trace", path_);
  }
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;
  ~trace_file() { ::close(file_); }

  int descriptor() const noexcept { return file_; }
  const std::string& path() const noexcept { return path_; }
  /// Empties a file that was written before; what is none, as a pipe, goes on. Safe in signal handlers.
  void restart() const noexcept {
    if (::lseek(file_, 0, SEEK_SET) == 0) static_cast<void>(::ftruncate(file_, 0));
  }

 private:
  static std::string own_path(std::string path) {
    for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos;)
      path.replace(at, 2, std::to_string(::getpid()));
    std::ptrdiff_t number = 0;
    {
      const std::lock_guard hold(mutex_);
      used_.push_back(path);
      number = std::count(used_.begin(), used_.end(), path);
    }
    struct stat is{};
    if (number > 1 && (::stat(path.c_str(), &is) != 0 || S_ISREG(is.st_mode))) {
      const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
      const std::size_t dot = path.rfind('.');
      path.insert(dot != std::string::npos && dot > name ? dot : path.size(), "." + std::to_string(number));
    }
    return path;
  }

  WEFT_PER_PROCESS static inline std::mutex mutex_;
  WEFT_PER_PROCESS static inline std::vector<std::string> used_;
  std::string path_;
  int file_ = -1;
};

}  // namespace weft::inline WEFT_ABI::observe
