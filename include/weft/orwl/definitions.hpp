// SPDX-License-Identifier: BSL-1.0
// The definitions of what this room declares, unless they are in the compiled library.
#pragma once

#include <weft/base/config.hpp>
#if WEFT_DEFINITIONS
#include <weft/orwl/detail/overlay.hpp>
#include <weft/orwl/detail/take_turns.hpp>
#endif
