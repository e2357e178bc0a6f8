// SPDX-License-Identifier: BSL-1.0
// Wavefronts in memory: tiles in order, and chained sweeps over grids in place.
#pragma once

#include <weft/wavefront/sweep.hpp>
#include <weft/wavefront/tiles.hpp>
