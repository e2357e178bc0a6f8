// SPDX-License-Identifier: BSL-1.0
// Ordered read-write locks: locations, handles, and overlays of recurrent tasks.
#pragma once

#include <weft/orwl/handle.hpp>
#include <weft/orwl/overlay.hpp>
