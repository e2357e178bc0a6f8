// SPDX-License-Identifier: BSL-1.0
// The definitions of what this room declares, unless they are in the compiled library.
#pragma once

#include <weft/base/config.hpp>
#if WEFT_DEFINITIONS
#include <weft/sched/detail/inlining.hpp>
#include <weft/sched/detail/outside_thief.hpp>
#include <weft/sched/detail/recorded_scope.hpp>
#include <weft/sched/detail/run.hpp>
#include <weft/sched/scheduler.hpp>
#endif
