// SPDX-License-Identifier: BSL-1.0
// Text that is valid JSON, whatever bytes names have; written without memory, locale or exceptions.
#pragma once

#include <weft/base/config.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::inline WEFT_ABI::observe {

/// How many bytes at the beginning of the text are one character of UTF-8; 0: they are none.
constexpr std::size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [s](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return s.empty() ? 0 : 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) >= 0xC0) return 0;
  // Neither longer than need be, nor half of a pair of UTF-16, nor beyond the last character.
  const unsigned second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90))
    return 0;
  return length;
}

/// Appends to a file. After a failed write, nothing more is written until begin(). *Thread safety*: one
/// thread at a time, also in a signal handler.
class json_text {
 public:
  explicit json_text(int file) noexcept : file_(file) {}
  json_text(const json_text&) = delete;
  json_text& operator=(const json_text&) = delete;

  /// Forgets what was not written and what failed: another text begins.
  void begin() noexcept {
    error_ = 0;
    size_ = 0;
  }

  json_text& raw(std::string_view s) noexcept {
    for (const char c : s) put(c);
    return *this;
  }
  /// A string, with its quotation marks. What is no UTF-8 becomes U+FFFD, byte by byte.
  json_text& string(std::string_view s) noexcept {
    put('"');
    while (!s.empty()) {
      std::size_t n = utf8_length(s);
      const auto c = static_cast<unsigned char>(s.front());
      if (n == 0) {
        n = 1;
        raw("\\ufffd");
      } else if (c == '"' || c == '\\') {
        put('\\');
        put(s.front());
      } else if (c < 0x20 || c == 0x7f) {
        constexpr std::string_view digits = "0123456789abcdef";
        raw("\\u00");
        put(digits[c >> 4]);
        put(digits[c & 15]);
      } else {
        raw(s.substr(0, n));
      }
      s.remove_prefix(n);
    }
    put('"');
    return *this;
  }
  json_text& number(std::uint64_t n) noexcept {
    std::array<char, 20> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = static_cast<char>('0' + n % 10);
      n /= 10;
    } while (n != 0);
    return raw({digits.data() + first, digits.size() - first});
  }
  /// As C++ writes it: 0x...
  json_text& hexadecimal(std::uint64_t n) noexcept {
    raw("0x");
    int shift = 60;
    while (shift > 0 && n >> shift == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) put("0123456789abcdef"[n >> shift & 15]);
    return *this;
  }
  /// Nanoseconds, rounded down, as microseconds with three decimals.
  json_text& microseconds(double nanoseconds) noexcept {
    const auto n = nanoseconds > 0 ? static_cast<std::uint64_t>(nanoseconds) : 0;
    number(n / 1000);
    put('.');
    put(static_cast<char>('0' + n / 100 % 10));
    put(static_cast<char>('0' + n / 10 % 10));
    put(static_cast<char>('0' + n % 10));
    return *this;
  }

  /// Writes what is left. *Returns*: 0, or the error number of the first write that failed.
  int end() noexcept {
    flush();
    return error_;
  }

 private:
  void put(char c) noexcept {
    if (size_ == buffer_.size()) flush();
    buffer_[size_++] = c;
  }
  void flush() noexcept {
    for (std::size_t done = 0; done < size_ && error_ == 0;) {
      const ssize_t n = ::write(file_, buffer_.data() + done, size_ - done);
      if (n > 0)
        done += static_cast<std::size_t>(n);
      else if (n == 0 || errno != EINTR)
        error_ = n == 0 ? EIO : errno;
    }
    size_ = 0;
  }

  int file_;
  int error_ = 0;
  std::size_t size_ = 0;
  std::array<char, 8192> buffer_;
};

}  // namespace weft::inline WEFT_ABI::observe
