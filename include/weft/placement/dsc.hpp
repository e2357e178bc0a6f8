// SPDX-License-Identifier: BSL-1.0
// DSC: tasks on the longest way are put together, so that nothing is sent along it.
#pragma once

#include <weft/placement/list_schedule.hpp>

#include <cstddef>
#include <numeric>
#include <set>

namespace weft::inline WEFT_ABI::placement {

/// The tasks of each cluster are executed by one processor. *Returns*: as many processors as there are
/// clusters. A task joins the cluster of a task that it reads from if it starts earlier there; the head of
/// the longest way comes first. Tasks that only it reads from, and that are alone, follow it. The head of a
/// longer way that is not free yet keeps the place behind the task on which it waits longest. *Cost*: O((v +
/// e) log v) for v tasks and e arcs, where few clusters meet. *Source*: Yang and Gerasoulis, "DSC: scheduling
/// parallel tasks on an unbounded number of processors" (1994).
inline schedule dsc_clusters(const task_graph& g, const machine& m) {
  const neighbours near(g, m);
  const std::vector<double> level = near.bottom_levels(g, true);
  const auto size = static_cast<std::uint32_t>(g.costs.size());
  constexpr unsigned none = ~0u;
  schedule s{std::vector<unsigned>(size, none), std::vector<double>(size), 0};
  std::vector<double>& top = s.start;  // of those that are placed: their start; else as far as known
  std::vector<std::uint32_t> missing(size), members;
  std::vector<double> free;  // of each cluster: when its last task ends
  using entry = std::pair<double, std::uint32_t>;
  std::set<entry, std::greater<>> ready, partly;  // by the longest way through them
  const auto priority = [&](std::uint32_t t) { return entry(top[t] + level[t], ~t); };
  const auto end = [&](std::uint32_t t) { return top[t] + g.costs[t]; };
  /// When a task can start in a cluster at whose end it comes.
  const auto start_in = [&](std::uint32_t t, unsigned cluster) {
    double at = free[cluster];
    for (const neighbour& n : near.before(t))
      at = std::max(at, end(n.task) + (s.processor[n.task] == cluster ? 0 : n.delay));
    return at;
  };
  for (std::uint32_t t = 0; t < size; ++t) {
    missing[t] = static_cast<std::uint32_t>(near.before(t).size());
    if (missing[t] == 0) ready.insert(priority(t));
  }
  while (!ready.empty()) {
    const std::uint32_t t = ~ready.begin()->second;
    ready.erase(ready.begin());
    // The cluster whose end the head of a longer way needs, if it has one.
    unsigned reserved = none;
    if (!partly.empty() && partly.begin()->first > top[t] + level[t]) {
      const std::uint32_t waiting = ~partly.begin()->second;
      double latest = -1;
      for (const neighbour& n : near.before(waiting))
        if (s.processor[n.task] != none && end(n.task) + n.delay > latest)
          latest = end(n.task) + n.delay, reserved = s.processor[n.task];
      if (reserved != none && free[reserved] >= latest) reserved = none;  // nothing to be gained there
    }
    unsigned best = none;
    double start = top[t];
    for (const neighbour& n : near.before(t))
      if (const unsigned c = s.processor[n.task]; c != reserved)
        if (const double at = start_in(t, c); at < start) best = c, start = at;
    if (best == none) {
      best = static_cast<unsigned>(free.size());
      free.push_back(0);
      members.push_back(0);
    } else {
      // Others that it reads from move in front of it, the one that arrives last first.
      std::vector<entry> others;
      for (const neighbour& n : near.before(t))
        if (const unsigned c = s.processor[n.task];
            c != best && members[c] == 1 && near.after(n.task).size() == 1 && near.before(n.task).empty())
          others.emplace_back(end(n.task) + n.delay, n.task);
      std::sort(others.begin(), others.end(), std::greater<>());
      for (const auto& [arrival, other] : others) {
        const double was = top[other], was_free = free[best];
        const unsigned from = s.processor[other];
        top[other] = free[best];
        s.processor[other] = best;
        free[best] = end(other);
        if (const double at = start_in(t, best); at < start) {
          start = at;
          ++members[best];
          members[from] = 0;
        } else {
          top[other] = was;
          s.processor[other] = from;
          free[best] = was_free;
          break;
        }
      }
    }
    s.processor[t] = best;
    top[t] = start;
    free[best] = end(t);
    ++members[best];
    for (const neighbour& n : near.after(t)) {
      partly.erase(priority(n.task));
      top[n.task] = std::max(top[n.task], end(t) + n.delay);
      (--missing[n.task] == 0 ? ready : partly).insert(priority(n.task));
    }
  }
  // Clusters that have lost their task are not counted.
  std::vector<unsigned> number(free.size());
  unsigned used = 0;
  for (std::size_t c = 0; c < number.size(); ++c)
    if (members[c] != 0) number[c] = used++;
  for (std::uint32_t t = 0; t < size; ++t) {
    s.processor[t] = number[s.processor[t]];
    s.length = std::max(s.length, end(t));
  }
  return s;
}

/// The clusters, the largest first, each on the processor that has least to do. *Cost*: as dsc_clusters.
inline schedule dsc(const task_graph& g, const machine& m) {
  const schedule clusters = dsc_clusters(g, m);
  unsigned count = 0;
  for (const unsigned c : clusters.processor) count = std::max(count, c + 1);
  std::vector<double> work(count);
  for (std::size_t t = 0; t < g.costs.size(); ++t) work[clusters.processor[t]] += g.costs[t];
  std::vector<unsigned> order(count), on(count);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&work](unsigned a, unsigned b) { return work[a] != work[b] ? work[a] > work[b] : a < b; });
  std::vector<double> load(m.processors);
  for (const unsigned c : order) {
    const auto least = std::min_element(load.begin(), load.end());
    on[c] = static_cast<unsigned>(least - load.begin());
    *least += work[c];
  }
  std::vector<unsigned> processor(g.costs.size());
  for (std::size_t t = 0; t < processor.size(); ++t) processor[t] = on[clusters.processor[t]];
  return list_schedule(g, m, std::move(processor));
}

}  // namespace weft::inline WEFT_ABI::placement
