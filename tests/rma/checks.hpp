// SPDX-License-Identifier: BSL-1.0
// Checks that any thread of any process makes, and that are counted.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

inline std::atomic<int> failures{0};

inline void check(bool right, const char* what, int line) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "line %d: %s\n", line, what);
}
#define RIGHT(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

/// What an exception of this type says that `f` throws.
template <class Exception>
std::string refusal(const auto& f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}
