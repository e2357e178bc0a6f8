// SPDX-License-Identifier: BSL-1.0
// Numbers that a test reaches, for tests/figures.py, which adds them up and compares them with
// tests/floors.txt.
#pragma once

#include <cstdint>
#include <cstdio>

namespace weft_test {

/// Prints a figure; those of one name are added up.
inline void figure(const char* name, std::uint64_t value) {
  std::printf("figure %s %llu\n", name, static_cast<unsigned long long>(value));
}

}  // namespace weft_test
