// SPDX-License-Identifier: BSL-1.0
// The file of a trace: made when the runtime starts, under a name that no other trace of the process has.
#pragma once

#include <weft/base/config.hpp>
#include <weft/io/failure.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <mutex>
#include <string>

namespace weft::inline WEFT_ABI::observe {

/// An open file, empty at first.
class trace_file {
 public:
  /// `path`: "%p" stands for the number of the process; the second trace of a process under the same path
  /// gets ".2" before the extension, and so on, where no other one has this.
  /// *Throws*: std::system_error with the path if it cannot be written.
  explicit trace_file(const std::string& path) : path_(take_path(path)) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ >= 0) return;
    const int error = errno;
    {
      const std::lock_guard hold(mutex_);
      const std::string own = framed(path_);
      if (const std::size_t at = used_.find(own); at != std::string::npos) used_.erase(at, own.size());
    }
    io::fail(error, "write the trace", path_);
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
  static std::string take_path(std::string path) {
    for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos;)
      path.replace(at, 2, std::to_string(::getpid()));
    struct stat is{};
    if (::stat(path.c_str(), &is) == 0 && !S_ISREG(is.st_mode)) return path;  // a device may have several
    const std::size_t name = path.rfind('/') + 1;                             // npos + 1 is 0
    const std::size_t dot = path.rfind('.');
    const std::size_t end = dot != std::string::npos && dot > name ? dot : path.size();
    const std::lock_guard hold(mutex_);
    std::string own = path;
    for (unsigned number = 2; used_.find(framed(own)) != std::string::npos; ++number)
      own = path.substr(0, end) + "." + std::to_string(number) + path.substr(end);
    used_ += framed(own);
    return own;
  }
  static std::string framed(const std::string& path) { return '\0' + path + '\0'; }

  WEFT_PER_PROCESS static inline std::mutex mutex_;
  WEFT_PER_PROCESS static inline std::string
      used_;  ///< paths of this process, framed (a set costs all who include)
  std::string path_;
  int file_ = -1;
};

}  // namespace weft::inline WEFT_ABI::observe
