// SPDX-License-Identifier: BSL-1.0
// The WEFT_* environment variables: the one table of them, and readers that refuse what makes no sense.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/base/error.hpp>
#include <weft/system/detail/whole_number.hpp>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace weft::inline WEFT_ABI::base {

/// A variable that the library reads, and its meaning for a reader of the manual.
struct environment_variable {
  std::string_view name;
  std::string_view meaning;
};

/// Every variable of the library. A reader below refuses names that are missing here.
inline constexpr environment_variable environment_table[] = {
    {"WEFT_WORKERS",
     "workers of a runtime; 0: as many as affinity mask and CPU quota allow, whatever the program says"},
    {"WEFT_STACK_SIZE", "bytes of a context's stack (suffix k or m)"},
    {"WEFT_INLINING", "0: fork never runs a task at once inside itself; 1: it may"},
    {"WEFT_SURPLUS", "tasks in a row that a strand leaves to thieves after a pause; 0 counts as 1"},
    {"WEFT_CAP", "tasks that a strand keeps before fork runs some of them"},
    {"WEFT_VERSIONS", "most versions of one object; 1: none is renamed"},
    {"WEFT_SPIN_US", "microseconds an idle worker searches before it sleeps"},
    {"WEFT_STALL_MS", "milliseconds without progress after which a run is described; 0: never"},
    {"WEFT_PINNING", "none, compact, scatter or a list of processors, as 0-3,8: where the workers run"},
    {"WEFT_TRACE", "file into which a runtime writes what its workers did and when"},
    {"WEFT_TRACE_MB", "mebibytes of memory for that; then the oldest is dropped"},
    {"WEFT_MPI_VERBOSE", "1: process 0 says how each window of a job of several processes is reached"},
};

namespace detail {

inline bool in_environment_table(std::string_view name) noexcept {
  for (const environment_variable& known : environment_table)
    if (known.name == name) return true;
  return false;
}

[[noreturn]] inline void refuse_value(const char* name, std::string_view text, const std::string& expected) {
  std::string sentence = "weft: environment variable ";
  sentence.append(name).append("='").append(text).append("' is invalid; expected ").append(expected);
  throw option_error(sentence);
}

inline std::string range_text(std::size_t lowest, std::size_t highest) {
  return " from " + std::to_string(lowest) + " to " + std::to_string(highest);
}

inline std::optional<std::size_t> in_range(std::optional<std::uint64_t> value, std::size_t lowest,
                                           std::size_t highest) {
  return value && *value >= lowest && *value <= highest ? value : std::nullopt;
}

}  // namespace detail

/// The text of a variable of the table; nullptr if it is not set.
inline const char* environment_text(const char* name) noexcept {
  if (!detail::in_environment_table(name))
    fail("environment variable %s is missing in environment_table", name);
  return std::getenv(name);
}

/// A whole number in [lowest, highest]. *Returns*: nothing if the variable is not set.
/// *Throws*: weft::option_error that names the variable, its text and the range. *Suspends*: no.
/// *Thread safety*: any thread, as long as nobody changes the environment (the same for all below).
inline std::optional<std::size_t> environment_unsigned(const char* name, std::size_t lowest,
                                                       std::size_t highest) {
  const char* const text = environment_text(name);
  if (text == nullptr) return std::nullopt;
  const auto value = detail::in_range(whole_number(text), lowest, highest);
  if (!value) detail::refuse_value(name, text, "a whole number" + detail::range_text(lowest, highest));
  return value;
}

/// A number of bytes in [lowest, highest], with an optional suffix k (1024) or m (1024 k), either case.
/// *Returns*, *Throws*: as environment_unsigned.
inline std::optional<std::size_t> environment_bytes(const char* name, std::size_t lowest,
                                                    std::size_t highest) {
  const char* const text = environment_text(name);
  if (text == nullptr) return std::nullopt;
  std::string_view digits = text;
  const char suffix = digits.empty() ? '\0' : digits.back();
  const unsigned shift = suffix == 'k' || suffix == 'K' ? 10 : suffix == 'm' || suffix == 'M' ? 20 : 0;
  if (shift != 0) digits.remove_suffix(1);
  auto value = whole_number(digits);
  if (value && *value > (std::numeric_limits<std::size_t>::max() >> shift)) value.reset();
  if (value) *value <<= shift;
  value = detail::in_range(value, lowest, highest);
  if (!value) {
    detail::refuse_value(
        name, text,
        "a number of bytes, with suffix k or m if you like," + detail::range_text(lowest, highest));
  }
  return value;
}

/// 0 or 1. *Returns*, *Throws*: as environment_unsigned.
inline std::optional<bool> environment_bool(const char* name) {
  const char* const text = environment_text(name);
  if (text == nullptr) return std::nullopt;
  if (std::string_view(text) == "0") return false;
  if (std::string_view(text) == "1") return true;
  detail::refuse_value(name, text, "0 or 1");
}

/// A whole number of microseconds in [lowest, highest]. *Returns*, *Throws*: as environment_unsigned.
inline std::optional<std::chrono::microseconds> environment_microseconds(const char* name,
                                                                         std::chrono::microseconds lowest,
                                                                         std::chrono::microseconds highest) {
  const char* const text = environment_text(name);
  if (text == nullptr) return std::nullopt;
  const auto least = static_cast<std::size_t>(lowest.count());
  const auto most = static_cast<std::size_t>(highest.count());
  const auto value = detail::in_range(whole_number(text), least, most);
  if (!value)
    detail::refuse_value(name, text, "a whole number of microseconds" + detail::range_text(least, most));
  return std::chrono::microseconds(static_cast<std::chrono::microseconds::rep>(*value));
}

/// Refuses a misspelt variable: every name in the environment that starts with WEFT_ must be in the table.
/// WEFT_TEST_ belongs to the library's tests, which know their own.
/// *Throws*: weft::option_error, "unknown environment variable WEFT_FOO; known are ...".
inline void check_environment() {
  constexpr std::string_view ours = "WEFT_";
  constexpr std::string_view of_tests = "WEFT_TEST_";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view setting = *entry;
    const std::string_view name = setting.substr(0, setting.find('='));
    if (!name.starts_with(ours) || name.starts_with(of_tests) || detail::in_environment_table(name)) continue;
    std::string sentence = "weft: unknown environment variable ";
    sentence.append(name).append("; known are");
    const char* separator = " ";
    for (const environment_variable& known : environment_table) {
      sentence.append(separator).append(known.name);
      separator = ", ";
    }
    throw option_error(sentence);
  }
}

}  // namespace weft::inline WEFT_ABI::base
