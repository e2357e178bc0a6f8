// SPDX-License-Identifier: BSL-1.0
// ETF: the task that can start earliest comes next, on the processor where it can.
#pragma once

#include <weft/placement/detail/neighbours.hpp>
#include <weft/placement/task_graph.hpp>

#include <cstddef>

namespace weft::inline WEFT_ABI::placement {

/// Of equals, the task from which the longest way leads to the end comes first. The length is at most 2 - 1/p
/// times the best one without delays, and the delays of one chain. *Cost*: O(p v w) for v tasks of which up
/// to w are ready at a time, and p processors. *Source*: Hwang, Chow, Anger, Lee, "Scheduling precedence
/// graphs in systems with interprocessor communication times" (1989).
inline schedule etf(const task_graph& g, const machine& m) {
  const neighbours near(g, m);
  const std::vector<double> level = near.bottom_levels(g, false);
  const auto size = static_cast<std::uint32_t>(g.costs.size());
  struct candidate {
    std::uint32_t task;
    std::vector<double> arrival;  // of all that it reads, on each processor
  };
  std::vector<candidate> ready;
  std::vector<double> free(m.processors);
  std::vector<std::uint32_t> missing(size);
  schedule s{std::vector<unsigned>(size), std::vector<double>(size), 0};
  const auto add = [&](std::uint32_t t) {
    candidate c{t, std::vector<double>(m.processors)};
    for (const neighbour& n : near.before(t)) {
      const double end = s.start[n.task] + g.costs[n.task];
      for (unsigned p = 0; p < m.processors; ++p)
        c.arrival[p] = std::max(c.arrival[p], end + (s.processor[n.task] == p ? 0 : n.delay));
    }
    ready.push_back(std::move(c));
  };
  for (std::uint32_t t = 0; t < size; ++t) {
    missing[t] = static_cast<std::uint32_t>(near.before(t).size());
    if (missing[t] == 0) add(t);
  }
  while (!ready.empty()) {
    std::size_t best = 0;
    unsigned on = 0;
    double start = -1;
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (unsigned p = 0; p < m.processors; ++p) {
        const double at = std::max(free[p], ready[i].arrival[p]);
        const std::uint32_t t = ready[i].task, than = ready[best].task;
        const bool tie = at == start && i != best;
        const bool more_urgent = tie && (level[t] != level[than] ? level[t] > level[than] : t < than);
        if (start < 0 || at < start || more_urgent) best = i, on = p, start = at;
      }
    const std::uint32_t t = ready[best].task;
    ready[best] = std::move(ready.back());
    ready.pop_back();
    s.processor[t] = on;
    s.start[t] = start;
    free[on] = start + g.costs[t];
    s.length = std::max(s.length, free[on]);
    for (const neighbour& n : near.after(t))
      if (--missing[n.task] == 0) add(n.task);
  }
  return s;
}

}  // namespace weft::inline WEFT_ABI::placement
