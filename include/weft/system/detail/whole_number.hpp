// SPDX-License-Identifier: BSL-1.0
// A decimal number as a text that comes from outside has it, read strictly.
#pragma once

#include <weft/base/config.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::inline WEFT_ABI::base {

/// Reads decimal digits: at least one, no sign, no blank, no overflow.
/// *Returns*: the number; nothing if the text is anything else.
inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return std::nullopt;
    value = 10 * value + digit;
  }
  return value;
}

}  // namespace weft::inline WEFT_ABI::base
