// SPDX-License-Identifier: BSL-1.0
// A line of text put together and written inside a signal handler: no allocation, no stdio, no locale.
#pragma once

#include <weft/base/config.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace weft::inline WEFT_ABI::context::detail {

/// A bounded line; what does not fit is cut, except that room for the end of the sentence is kept by the
/// caller's short parts. *Thread safety*: as a value; async-signal-safe.
class fault_text {
 public:
  /// Appends at most 120 characters of `part`, with "..." in place of the rest.
  void add(const char* part) noexcept {
    std::size_t taken = 0;
    for (; *part != '\0' && taken < most_per_part; ++part, ++taken) put(*part);
    for (int i = 0; *part != '\0' && i < 3; ++i) put('.');
  }

  /// Appends a decimal number.
  void add(std::size_t number) noexcept {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count != 0) put(digits[--count]);
  }

  /// Writes the line to a file descriptor; gives up on errors other than interruption.
  void write_to(int file) const noexcept {
    for (std::size_t done = 0; done < size_;) {
      const ssize_t n = ::write(file, text_ + done, size_ - done);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (n == 0 || errno != EINTR) {
        return;
      }
    }
  }

 private:
  static constexpr std::size_t most_per_part = 120;

  void put(char c) noexcept {
    if (size_ < sizeof text_) text_[size_++] = c;
  }

  char text_[512];
  std::size_t size_ = 0;
};

}  // namespace weft::inline WEFT_ABI::context::detail
