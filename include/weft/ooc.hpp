// SPDX-License-Identifier: BSL-1.0
// Out of core: files that are read and written by tasks, and sweeps over grids that are larger than memory.
#pragma once

#include <weft/ooc/calibration.hpp>
#include <weft/ooc/convert.hpp>
#include <weft/ooc/grid_file.hpp>
#include <weft/ooc/io_queue.hpp>
#include <weft/ooc/model.hpp>
#include <weft/ooc/sweep.hpp>
