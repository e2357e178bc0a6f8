// SPDX-License-Identifier: BSL-1.0
// A decimal number as a text that comes from outside has it, read strictly.
#pragma once

#include <weft/base/config.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace weft::inline WEFT_ABI::base {

/// Reads decimal digits: at least one, no sign, no blank, no overflow.
/// *Returns*: the number; nothing if the text is anything else.
inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const std::from_chars_result read = std::from_chars(begin, end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

}  // namespace weft::inline WEFT_ABI::base
