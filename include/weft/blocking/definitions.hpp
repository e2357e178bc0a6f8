// SPDX-License-Identifier: BSL-1.0
// The definitions of what this room declares, unless they are in the compiled library.
#pragma once

#include <weft/base/config.hpp>
#include <weft/sched/definitions.hpp>
#if WEFT_DEFINITIONS
#include <weft/blocking/detail/blocking_call.hpp>
#include <weft/blocking/detail/external_event.hpp>
#include <weft/blocking/detail/fence.hpp>
#include <weft/blocking/detail/helper_team.hpp>
#include <weft/blocking/detail/spawn.hpp>
#include <weft/blocking/detail/wait.hpp>
#endif
