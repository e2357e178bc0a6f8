// SPDX-License-Identifier: BSL-1.0
// The stream in a million pieces, made when it is first asked for.
#pragma once

#include <string>

namespace weft_bench {

/// The path of the segmented stream; its index is the file of that name.
std::string index_of_segments();

/// The path of an ordinary file with the same bytes.
std::string plain_of_segments();

}  // namespace weft_bench
