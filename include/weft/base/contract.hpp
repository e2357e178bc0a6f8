// SPDX-License-Identifier: BSL-1.0
// Violated contracts: one readable sentence, then the end of the program.
#pragma once

#include <weft/base/config.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace weft::base {

/// Prints "weft: " and the sentence (printf format) to the standard error stream and aborts.
/// A failed check is never an optimiser's assumption.
[[noreturn, gnu::format(printf, 1, 2)]] WEFT_COLD inline void fail(const char* sentence, ...) noexcept {
  std::va_list values;
  va_start(values, sentence);
  std::fputs("weft: ", stderr);
  std::vfprintf(stderr, sentence, values);
  std::fputc('\n', stderr);
  va_end(values);
  std::fflush(stderr);
  std::abort();
}

}  // namespace weft::base
