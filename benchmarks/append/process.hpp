// SPDX-License-Identifier: BSL-1.0
// Compressors that are programs of their own.
#pragma once

#include "outcome.hpp"

#include <string>
#include <vector>

namespace weft_bench {

/// What the output must be: bzip2's own bytes, or anything that bzip2 decompresses to the input.
enum class compressed { as_stock, anyhow };

/// Runs a command, which compresses its standard input, on the text to be compressed. In the command, "#"
/// becomes the number of workers. The value of the outcome is the same for all that are right.
outcome run_compressor(std::vector<std::string> command, compressed how, unsigned workers);

}  // namespace weft_bench
