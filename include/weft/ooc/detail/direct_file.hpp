// SPDX-License-Identifier: BSL-1.0
// A file that is read and written past the page cache where the file system allows that.
#pragma once

#include <weft/io/file.hpp>
#include <weft/ooc/aligned_buffer.hpp>

#include <cstdio>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Direct or buffered; found out by asking and trying.
class direct_file {
 public:
  /// Takes over an open file; `direct`: tries to bypass the page cache. An empty file is tried by a write,
  /// and is empty again afterwards.
  direct_file(io::file f, bool direct) : file_(std::move(f)) {
    if (!direct) return;
    const int flags = ::fcntl(file_.descriptor(), F_GETFL);
    if (flags < 0 || !suits_() || ::fcntl(file_.descriptor(), F_SETFL, flags | O_DIRECT) != 0) {
      tell_();
      return;
    }
    direct_ = transfers_();
    if (direct_) return;
    if (::fcntl(file_.descriptor(), F_SETFL, flags) != 0) io::fail(errno, "set the mode of", file_.path());
    tell_();
  }
  io::file& get() noexcept { return file_; }
  const io::file& get() const noexcept { return file_; }
  bool direct() const noexcept { return direct_; }

 private:
  /// Whether file_alignment is enough, as far as the kernel tells.
  bool suits_() const noexcept {
#ifdef STATX_DIOALIGN
    struct statx all;
    if (::statx(file_.descriptor(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &all) == 0 &&
        (all.stx_mask & STATX_DIOALIGN) != 0)
      return all.stx_dio_offset_align != 0 && all.stx_dio_offset_align <= file_alignment &&
             all.stx_dio_mem_align <= file_alignment;
#endif
    return true;
  }
  /// A transfer behind the end of a file succeeds whatever it asks for, so an empty one is made longer first.
  bool transfers_() {
    memory_budget unlimited;
    const aligned_buffer page(unlimited, file_alignment);
    const bool empty = file_.regular() && file_.size() == 0;
    const auto done = [](auto call) {
      ssize_t n;
      while ((n = call()) < 0 && errno == EINTR) {
      }
      return n >= 0;
    };
    bool good = !empty || done([&] { return ::pwrite(file_.descriptor(), page.data(), file_alignment, 0); });
    good = good && done([&] { return ::pread(file_.descriptor(), page.data(), file_alignment, 0); });
    if (empty) file_.resize(0);
    return good;
  }
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
