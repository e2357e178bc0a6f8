// SPDX-License-Identifier: BSL-1.0
// Programs over all access modes, with values whose instances are counted.
#include "modes_runner.hpp"

namespace property::modes {

observation execute_counted(weft::runtime& rt, const program& p, notices& seen) {
  return execute<counted>(rt, p, seen);
}

std::uint64_t launches(std::size_t shape) {
  return shape_uses[shape].load(std::memory_order_relaxed);  // a statistic, read at the end
}

}  // namespace property::modes
