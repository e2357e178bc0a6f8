// SPDX-License-Identifier: BSL-1.0
// The runner with values whose instances are counted, and the launch statistics.
#include "runner.hpp"

namespace property {

observation execute_counted(weft::runtime& rt, const program& p, const expectation& expected) {
  return execute<counted>(rt, p, expected);
}

std::vector<usage> launches() {
  std::vector<usage> out;
  for (std::size_t i = 0; i < pattern_uses.size(); ++i)
    out.push_back({i < pattern_names.size() ? pattern_names[i] : "slot",
                   pattern_uses[i].load(std::memory_order_relaxed)});
  return out;
}

}  // namespace property
