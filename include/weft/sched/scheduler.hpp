// SPDX-License-Identifier: BSL-1.0
// The whole scheduler, for the definitions of rooms above; what these declare needs less.
#pragma once

#include <weft/sched/detail/fork.hpp>
#include <weft/sched/detail/worker_loop.hpp>
