// SPDX-License-Identifier: BSL-1.0
// Everything of weft but what needs MPI.
#pragma once

#include <weft/flow/completion.hpp>
#include <weft/flow/loop.hpp>
#include <weft/flow/no_suspend.hpp>
#include <weft/flow/recorded.hpp>
#include <weft/flow/runtime.hpp>
#include <weft/flow/this_task.hpp>
#include <weft/orwl.hpp>
#include <weft/version.hpp>
