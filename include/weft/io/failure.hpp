// SPDX-License-Identifier: BSL-1.0
// The exception of every failed call on a file: what was tried, on which path, and where in it.
#pragma once

#include <weft/base/config.hpp>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace weft::inline WEFT_ABI::io {

/// Throws what `code` (an errno value) means: "weft: cannot <operation> '<path>': No such file or directory".
[[noreturn]] WEFT_COLD inline void fail(int code, const char* operation, const std::string& path) {
  throw std::system_error(code, std::generic_category(),
                          std::string("weft: cannot ") + operation + " '" + path + "'");
}

/// The same with a place: "weft: cannot write '<path>' at offset 4096: No space left on device". *Returns*:
/// the exception.
WEFT_COLD inline std::system_error failure(int code, const char* operation, const std::string& path,
                                           std::uint64_t offset) {
  return std::system_error(
      code, std::generic_category(),
      std::string("weft: cannot ") + operation + " '" + path + "' at offset " + std::to_string(offset));
}
/// Throws it.
[[noreturn]] WEFT_COLD inline void fail(int code, const char* operation, const std::string& path,
                                        std::uint64_t offset) {
  throw failure(code, operation, path, offset);
}

}  // namespace weft::inline WEFT_ABI::io
