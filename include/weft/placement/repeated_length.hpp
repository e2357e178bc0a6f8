// SPDX-License-Identifier: BSL-1.0
// How long an iteration takes on average where a graph is repeated without a barrier.
#pragma once

#include <weft/placement/list_schedule.hpp>

namespace weft::inline WEFT_ABI::placement {

/// The tasks of every iteration are on the same processors. *Cost*: that of list_schedule for four
/// iterations.
inline double repeated_length(const task_graph& g, const machine& m, const std::vector<unsigned>& processor) {
  constexpr std::uint32_t copies = 4;
  const auto size = static_cast<std::uint32_t>(g.costs.size());
  task_graph all;
  std::vector<unsigned> on;
  for (std::uint32_t i = 0; i < copies; ++i) {
    all.costs.insert(all.costs.end(), g.costs.begin(), g.costs.end());
    on.insert(on.end(), processor.begin(), processor.end());
    for (const arc& a : g.arcs) all.arcs.push_back({a.from + i * size, a.to + i * size, a.bytes});
    if (i + 1 < copies)
      for (const arc& a : g.carried) all.arcs.push_back({a.from + i * size, a.to + (i + 1) * size, a.bytes});
  }
  const double first = list_schedule(g, m, processor).length;
  return (list_schedule(all, m, std::move(on)).length - first) / (copies - 1);
}

}  // namespace weft::inline WEFT_ABI::placement
