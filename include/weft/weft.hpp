// SPDX-License-Identifier: BSL-1.0
// Tasks, shared objects, loops, recorded graphs and ordered locks; streams and wavefronts have headers of
// their own.
#pragma once

#include <weft/flow/completion.hpp>
#include <weft/flow/interval.hpp>
#include <weft/flow/loop.hpp>
#include <weft/flow/no_suspend.hpp>
#include <weft/flow/recorded.hpp>
#include <weft/flow/runtime.hpp>
#include <weft/flow/steal_function.hpp>
#include <weft/flow/this_task.hpp>
#include <weft/orwl.hpp>
#include <weft/version.hpp>
