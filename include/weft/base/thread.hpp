// SPDX-License-Identifier: BSL-1.0
// Kernel threads, from the same platform as all else.
#pragma once

#include <weft/base/platform.hpp>

#if !defined(WEFT_PLATFORM)
#include <thread>

namespace weft::inline WEFT_ABI::base {

using std::thread;

}  // namespace weft::inline WEFT_ABI::base
#endif
