// SPDX-License-Identifier: BSL-1.0
// Append streams: parallel output whose bytes are those of the serial program.
#pragma once

#include <weft/archive/reader.hpp>
#include <weft/archive/recovery.hpp>
#include <weft/stream/append_file.hpp>
#include <weft/stream/append_sink.hpp>
#include <weft/stream/read.hpp>
