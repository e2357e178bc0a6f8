// SPDX-License-Identifier: BSL-1.0
// Programs over all access modes, with values that are plain words.
#include "modes_runner.hpp"

namespace property::modes {

observation execute_plain(weft::runtime& rt, const program& p, notices& seen) {
  return execute<std::uint64_t>(rt, p, seen);
}

std::uint64_t launches(std::size_t shape) {
  return shape_uses[shape].load(std::memory_order_relaxed);  // a statistic, read at the end
}

}  // namespace property::modes
