// SPDX-License-Identifier: BSL-1.0
// How the order of an overlay's first requests becomes a marked graph, and how its cycles are found.
#pragma once

#include <weft/orwl/detail/order.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::orwl::detail {

template <class X>
std::vector<arc> arcs_of(std::vector<claim> claims, std::span<const std::uint32_t> place) {
  std::sort(claims.begin(), claims.end(), [&](const claim& a, const claim& b) {
    if (a.location != b.location) return a.location < b.location;
    if (a.rank != b.rank) return a.rank < b.rank;
    return place[a.task] < place[b.task];
  });
  std::vector<arc> arcs;
  using group = std::span<const claim>;
  const auto wait = [&arcs](group first, group then, bool token) {
    for (const claim& f : first)
      for (const claim& t : then)
        if (f.task != t.task) arcs.push_back({f.task, t.task, f.location, token});
  };
  std::vector<group> groups;  // of one location: one exclusive request, or consecutive shared ones
  for (std::size_t begin = 0, end = 0; begin != claims.size(); begin = end) {
    groups.clear();
    for (; end != claims.size() && claims[end].location == claims[begin].location; ++end) {
      const bool joins = end != begin && !claims[end].exclusive && !claims[end - 1].exclusive;
      if (joins)
        groups.back() = group(groups.back().data(), groups.back().size() + 1);
      else
        groups.push_back(group(&claims[end], 1));
    }
    const std::size_t n = groups.size();
    for (std::size_t i = 1; i < n; ++i) wait(groups[i - 1], groups[i], false);
    if (n < 2) continue;
    if (groups[0].front().exclusive || groups[n - 1].front().exclusive) {
      wait(groups[n - 1], groups[0], true);
    } else {  // then there is an exclusive one between them
      wait(groups[n - 1], groups[1], true);
      wait(groups[n - 2], groups[0], true);
    }
  }
  std::sort(arcs.begin(), arcs.end(), [](const arc& a, const arc& b) {
    if (a.from != b.from) return a.from < b.from;
    if (a.to != b.to) return a.to < b.to;
    return a.token < b.token;
  });
  arcs.erase(std::unique(arcs.begin(), arcs.end(),
                         [](const arc& a, const arc& b) { return a.from == b.from && a.to == b.to; }),
             arcs.end());
  return arcs;
}

template <class X>
std::vector<std::uint32_t> begins_of(std::span<const arc> arcs, std::size_t tasks) {
  std::vector<std::uint32_t> begins(tasks + 1, 0);
  for (const arc& a : arcs) ++begins[a.from + 1];
  for (std::size_t t = 0; t < tasks; ++t) begins[t + 1] += begins[t];
  return begins;
}

template <class X>
std::vector<arc> find_cycle(std::span<const arc> arcs, std::size_t tasks) {
  const std::vector<std::uint32_t> begins = begins_of(arcs, tasks);
  std::vector<std::uint32_t> waits(tasks, 0), free;
  for (const arc& a : arcs) waits[a.to] += !a.token;
  for (std::uint32_t t = 0; t < tasks; ++t)
    if (waits[t] == 0) free.push_back(t);
  std::size_t ended = 0;
  for (; ended != free.size(); ++ended)
    for (std::uint32_t i = begins[free[ended]]; i != begins[free[ended] + 1]; ++i)
      if (!arcs[i].token && --waits[arcs[i].to] == 0) free.push_back(arcs[i].to);
  if (ended == tasks) return {};

  // Every task left has one before it that is left, too: going back from any of them leads into a cycle.
  constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> before(tasks, none);  // an arc from a task that is left
  for (std::uint32_t i = 0; i < arcs.size(); ++i)
    if (!arcs[i].token && waits[arcs[i].from] != 0 && waits[arcs[i].to] != 0) before[arcs[i].to] = i;
  std::uint32_t at = 0;
  while (waits[at] == 0) ++at;
  for (std::size_t steps = 0; steps < tasks; ++steps) at = arcs[before[at]].from;
  std::vector<arc> cycle;
  for (std::uint32_t t = at; cycle.empty() || t != at; t = cycle.back().from)
    cycle.push_back(arcs[before[t]]);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace weft::inline WEFT_ABI::orwl::detail
