// SPDX-License-Identifier: BSL-1.0
// A body that is being executed, as its strand keeps it for the trace.
#pragma once

#include <weft/base/config.hpp>

#include <cstdint>

namespace weft::inline WEFT_ABI::observe {

/// A body that runs, in the strand that executes it.
struct open_slice {
  const char* name;     ///< kept by the trace
  std::uint64_t begin;  ///< of the body, or of the part of it since its last wait; in ticks
  std::uint64_t fork;   ///< fork_stamp, if it was stolen; else 0
  open_slice* outer;    ///< the body inside whose fork it runs
};

}  // namespace weft::inline WEFT_ABI::observe
