// SPDX-License-Identifier: BSL-1.0
// Positions in a stream that is read.
#pragma once

#include <weft/base/error.hpp>

#include <cstdint>
#include <string>

namespace weft::inline WEFT_ABI {

/// What an offset of seek counts from.
enum class seek_from { begin, current, end };

namespace stream {

/// The position that a seek leads to.
/// *Throws*: weft::error if it would be negative.
inline std::uint64_t sought(std::int64_t offset, seek_from from, std::uint64_t position, std::uint64_t size,
                            const std::string& name) {
  const auto base = static_cast<std::int64_t>(from == seek_from::begin     ? 0
                                              : from == seek_from::current ? position
                                                                           : size);
  std::int64_t sum;
  if (__builtin_add_overflow(base, offset, &sum) || sum < 0)
    throw error("weft: seek in '" + name + "' to before its beginning, or too far");
  return static_cast<std::uint64_t>(sum);
}

}  // namespace stream
}  // namespace weft::inline WEFT_ABI
