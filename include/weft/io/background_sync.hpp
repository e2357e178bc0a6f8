// SPDX-License-Identifier: BSL-1.0
// The data of one file on their way to the device while the caller synchronises another one.
#pragma once

#include <weft/io/file.hpp>

#include <aio.h>
#include <unistd.h>

#include <memory>
#include <new>

namespace weft::inline WEFT_ABI::io {

/// A sync_data() that began at construction and ends at finish() or destruction. POSIX has such requests
/// (aio_fsync); where none can be made, finish() does it, and so it does in a child of a process that has
/// made some: the threads that serve requests are not there, and the C library does not know that. The file
/// must outlive it. *Thread safety*: one thread.
class background_sync {
 public:
  explicit background_sync(file& of) noexcept : of_(of) {
    if (request_ == nullptr || !has_threads_()) return;
    request_->aio_fildes = of.descriptor();
    request_->aio_sigevent.sigev_notify = SIGEV_NONE;
    running_ = ::aio_fsync(O_DSYNC, request_.get()) == 0;
  }
  background_sync(const background_sync&) = delete;
  background_sync& operator=(const background_sync&) = delete;
  ~background_sync() {
    if (running_) wait_();
  }

  /// All writes to the file before the construction are on the device on return. *Throws*: as
  /// file::sync_data.
  void finish() {
    if (!running_) return of_.sync_data();
    if (const int error = wait_()) fail(error, "bring to the device", of_.path());
  }

 private:
  static bool has_threads_() noexcept {
    static const pid_t first_user = ::getpid();
    return ::getpid() == first_user;
  }
  int wait_() noexcept {
    running_ = false;
    const aiocb* const all[] = {request_.get()};
    int error = 0;
    while ((error = ::aio_error(request_.get())) == EINPROGRESS) ::aio_suspend(all, 1, nullptr);
    ::aio_return(request_.get());
    return error;
  }

  file& of_;
  // Not a member itself: it ends with an array of no size.
  std::unique_ptr<aiocb> request_{new (std::nothrow) aiocb{}};
  bool running_ = false;
};

}  // namespace weft::inline WEFT_ABI::io
