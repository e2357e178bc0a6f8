// SPDX-License-Identifier: BSL-1.0
// The definitions of what this room declares, unless they are in the compiled library.
#pragma once

#include <weft/base/config.hpp>
#include <weft/sched/definitions.hpp>
#if WEFT_DEFINITIONS
#include <weft/inspect/detail/runtime_state.hpp>
#endif
