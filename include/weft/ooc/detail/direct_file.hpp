// SPDX-License-Identifier: BSL-1.0
// A file that is read and written past the page cache where the file system allows that.
#pragma once

#include <weft/io/file.hpp>
#include <weft/ooc/aligned_buffer.hpp>

#include <cstdio>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Direct or buffered; found out by trying.
class direct_file {
 public:
  /// Takes over an open file; `direct`: tries to bypass the page cache.
  direct_file(io::file f, bool direct) : file_(std::move(f)) {
    if (!direct) return;
    const int flags = ::fcntl(file_.descriptor(), F_GETFL);
    if (flags < 0 || ::fcntl(file_.descriptor(), F_SETFL, flags | O_DIRECT) != 0) {
      tell_();
      return;
    }
    memory_budget unlimited;
    const aligned_buffer page(unlimited, file_alignment);
    while (::pread(file_.descriptor(), page.data(), file_alignment, 0) < 0) {
      if (errno == EINTR) continue;
      if (::fcntl(file_.descriptor(), F_SETFL, flags) != 0) io::fail(errno, "set the mode of", file_.path());
      tell_();
      return;
    }
    direct_ = true;
  }
  io::file& get() noexcept { return file_; }
  const io::file& get() const noexcept { return file_; }
  bool direct() const noexcept { return direct_; }

 private:
  void tell_() const noexcept {
    static base::atomic<bool> told{false};
    if (told.exchange(true, base::memory_order_relaxed)) return;  // relaxed: only who is first matters
    std::fprintf(stderr, "weft: '%s' cannot be read and written directly; the page cache is used\n",
                 file_.path().c_str());
  }

  io::file file_;
  bool direct_ = false;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
