// SPDX-License-Identifier: BSL-1.0
// A line on the standard error stream that says how far a compression is.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace pbz {

class progress {
 public:
  /// `size`: of the whole input, or 0 if nobody knows it.
  progress(bool show, std::uint64_t size) : show_(show), size_(size) {}

  /// So much has been read. *Thread safety*: one thread at a time.
  void read(std::uint64_t count) {
    read_ = count;
    if (!show_ || clock::now() < next_) return;
    next_ = clock::now() + std::chrono::milliseconds(200);
    print_('\r');
  }
  /// So much has been written. *Thread safety*: any.
  void written(std::uint64_t count) { written_.store(count, std::memory_order_relaxed); }  // a number alone
  /// The last line.
  void end() {
    if (show_) print_('\n');
  }

 private:
  using clock = std::chrono::steady_clock;

  void print_(char last) {
    const double seconds = std::chrono::duration<double>(clock::now() - start_).count();
    const auto read = static_cast<double>(read_);
    const auto written = static_cast<double>(written_.load(std::memory_order_relaxed));
    char percent[16] = "";
    if (size_ != 0)
      std::snprintf(percent, sizeof percent, "%3.0f %%, ", 100 * read / static_cast<double>(size_));
    std::fprintf(stderr, "\rpbz: %s%.1f MB read, %.1f MB written, %.1f MB/s%s%c", percent, read / 1e6,
                 written / 1e6, read / 1e6 / seconds, last == '\n' ? "    " : "", last);
    std::fflush(stderr);
  }

  bool show_;
  std::uint64_t size_;
  std::uint64_t read_ = 0;
  std::atomic<std::uint64_t> written_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point next_ = start_;
};

}  // namespace pbz
