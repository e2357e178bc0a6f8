// SPDX-License-Identifier: BSL-1.0
// The scheduler as the rooms above it use it: the functions they call, each with its definition.
#pragma once

#include <weft/sched/detail/fork.hpp>
#include <weft/sched/detail/worker_loop.hpp>
