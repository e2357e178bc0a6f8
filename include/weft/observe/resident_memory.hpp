// SPDX-License-Identifier: BSL-1.0
// How much memory of the process is resident, looked at now and then.
#pragma once

#include <weft/base/atomic.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace weft::inline WEFT_ABI::observe {

/// The resident memory of the process, as the kernel counts it. *Thread safety*: any thread.
class resident_memory {
 public:
  /// Where the kernel does not tell, there is nothing to be seen.
  resident_memory() noexcept : file_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  resident_memory(const resident_memory&) = delete;
  resident_memory& operator=(const resident_memory&) = delete;
  ~resident_memory() {
    if (file_ >= 0) ::close(file_);
  }

  /// *Returns*: bytes; 0 if it is not known, or somebody has looked not long ago. *Cost*: a system call every
  /// few milliseconds.
  std::uint64_t look(std::uint64_t now) noexcept {
    constexpr std::int64_t pause = 10'000'000;  // ticks
    std::uint64_t last = last_.load(base::memory_order_relaxed);
    // Relaxed: only the time counts, and who has set it looks. Another thread's counter may be slightly
    // ahead.
    if (file_ < 0 || static_cast<std::int64_t>(now - last) < pause ||
        !last_.compare_exchange_strong(last, now, base::memory_order_relaxed))
      return 0;
    std::array<char, 64> text{};  // "size resident ...", in pages
    if (::pread(file_, text.data(), text.size() - 1, 0) <= 0) return 0;
    char* end = nullptr;
    std::strtoull(text.data(), &end, 10);
    return std::strtoull(end, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  const int file_;
  base::atomic<std::uint64_t> last_{0};
};

}  // namespace weft::inline WEFT_ABI::observe
