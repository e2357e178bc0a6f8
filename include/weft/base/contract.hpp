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

namespace weft::inline WEFT_ABI::base {

/// Prints "weft: " and the sentence (printf format) to the standard error stream, and aborts. In checked
/// builds it also prints the place in the user's sources that led here, and where there is one, `place`, of
/// which here() told.
[[noreturn]] WEFT_COLD inline void fail_with(const char* sentence, std::va_list values,
                                             [[maybe_unused]] const char* what = nullptr,
                                             [[maybe_unused]] const void* place = nullptr) noexcept {
  std::fputs("weft: ", stderr);
  std::vfprintf(stderr, sentence, values);
  std::fputc('\n', stderr);
  std::fflush(stderr);
#if WEFT_CHECKED
  print_running_source("at");
  if (place != nullptr) print_source(what, {&place, 1});
#endif
  std::abort();
}

/// Ends the program with a sentence (printf format). A failed check is never an optimiser's assumption.
[[noreturn, gnu::format(printf, 1, 2)]] WEFT_COLD inline void fail(const char* sentence, ...) noexcept {
  std::va_list values;
  va_start(values, sentence);
  fail_with(sentence, values);
}

/// The same about something that was done before: `what` at `place`.
[[noreturn, gnu::format(printf, 3, 4)]] WEFT_COLD inline void fail_after(const char* what, const void* place,
                                                                         const char* sentence, ...) noexcept {
  std::va_list values;
  va_start(values, sentence);
  fail_with(sentence, values, what, place);
}

}  // namespace weft::inline WEFT_ABI::base
