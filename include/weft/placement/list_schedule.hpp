// SPDX-License-Identifier: BSL-1.0
// The schedule of tasks whose processors are given.
#pragma once

#include <weft/placement/detail/neighbours.hpp>
#include <weft/placement/task_graph.hpp>

#include <queue>
#include <utility>

namespace weft::inline WEFT_ABI::placement {

/// Each processor executes, of its tasks that may begin, the one from which the longest way leads to the end.
/// *Requires*: a processor for each task. *Cost*: O(v (p + log v) + e) for v tasks, e arcs, p processors.
inline schedule list_schedule(const task_graph& g, const machine& m, std::vector<unsigned> processor) {
  const neighbours near(g, m);
  const std::vector<double> level = near.bottom_levels(g, true);
  const auto size = static_cast<std::uint32_t>(g.costs.size());
  using entry = std::pair<double, std::uint32_t>;
  struct executor {
    double free = 0;
    // What has come earlier than the processor is free, by level; and what comes later, by time.
    std::priority_queue<entry> ready;
    std::priority_queue<entry, std::vector<entry>, std::greater<>> coming;
  };
  std::vector<executor> all(m.processors);
  std::vector<std::uint32_t> missing(size);
  std::vector<double> arrival(size);
  schedule s{std::move(processor), std::vector<double>(size), 0};
  for (std::uint32_t t = 0; t < size; ++t) {
    missing[t] = static_cast<std::uint32_t>(near.before(t).size());
    if (missing[t] == 0) all[s.processor[t]].coming.emplace(0.0, t);
  }
  for (std::uint32_t left = size; left != 0; --left) {
    executor* next = nullptr;
    double at = 0;
    for (executor& e : all) {
      for (; !e.coming.empty() && e.coming.top().first <= e.free; e.coming.pop())
        e.ready.emplace(level[e.coming.top().second], ~e.coming.top().second);  // of equals the earlier one
      if (e.ready.empty() && e.coming.empty()) continue;
      const double begin = e.ready.empty() ? e.coming.top().first : e.free;
      if (next == nullptr || begin < at) next = &e, at = begin;
    }
    if (next->ready.empty()) {
      next->free = at;  // idle until then
      ++left;
      continue;
    }
    const std::uint32_t t = ~next->ready.top().second;
    next->ready.pop();
    s.start[t] = at;
    next->free = at + g.costs[t];
    s.length = std::max(s.length, next->free);
    for (const neighbour& n : near.after(t)) {
      arrival[n.task] =
          std::max(arrival[n.task], next->free + (s.processor[n.task] == s.processor[t] ? 0 : n.delay));
      if (--missing[n.task] == 0) all[s.processor[n.task]].coming.emplace(arrival[n.task], n.task);
    }
  }
  return s;
}

}  // namespace weft::inline WEFT_ABI::placement
