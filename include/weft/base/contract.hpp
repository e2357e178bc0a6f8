// SPDX-License-Identifier: BSL-1.0
// Violated contracts: one readable sentence, then the end of the program.
#pragma once

#include <weft/base/config.hpp>
#if WEFT_CHECKED
#include <weft/base/source_place.hpp>
#endif

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace weft::base {

/// Prints "weft: " and the sentence (printf format) to the standard error stream.
WEFT_COLD inline void complain(const char* sentence, std::va_list values) noexcept {
  std::fputs("weft: ", stderr);
  std::vfprintf(stderr, sentence, values);
  std::fputc('\n', stderr);
  std::fflush(stderr);
}

/// Prints a sentence (printf format) to the standard error stream, and in checked builds the place in the
/// user's sources that led here, and aborts. A failed check is never an optimiser's assumption.
[[noreturn, gnu::format(printf, 1, 2)]] WEFT_COLD inline void fail(const char* sentence, ...) noexcept {
  std::va_list values;
  va_start(values, sentence);
  complain(sentence, values);
  va_end(values);
#if WEFT_CHECKED
  print_running_source("at");
#endif
  std::abort();
}

/// The same about something that was done before: `what`, at a place of which here() told in a checked build.
[[noreturn, gnu::format(printf, 3, 4)]] WEFT_COLD inline void fail_after([[maybe_unused]] const char* what,
                                                                         [[maybe_unused]] const void* place,
                                                                         const char* sentence, ...) noexcept {
  std::va_list values;
  va_start(values, sentence);
  complain(sentence, values);
  va_end(values);
#if WEFT_CHECKED
  print_running_source("at");
  print_source(what, {&place, 1});
#endif
  std::abort();
}

}  // namespace weft::base
