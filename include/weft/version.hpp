// SPDX-License-Identifier: BSL-1.0
// The version of weft; this is the one place that states it, and CMake reads it from here.
#pragma once

#include <weft/base/config.hpp>

namespace weft::inline WEFT_ABI {

/// Changes when programs must be changed to compile or to keep their meaning.
inline constexpr int version_major = 0;
/// Changes when something is added; while the major number is 0, also when something changes its meaning.
inline constexpr int version_minor = 1;
/// Changes when only faults are mended.
inline constexpr int version_patch = 0;
/// The three numbers as text.
inline constexpr char version_string[] = "0.1.0";

}  // namespace weft::inline WEFT_ABI
