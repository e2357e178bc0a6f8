// SPDX-License-Identifier: BSL-1.0
// Owner-computes: data are placed, and each task is executed where what it writes is.
#pragma once

#include <weft/placement/list_schedule.hpp>

#include <cstddef>

namespace weft::inline WEFT_ABI::placement {

/// The datum where each task is executed: of those that it writes the largest one, the first of equals; of
/// those that it reads, if it writes none. `no_datum` if it uses none.
inline constexpr std::uint32_t no_datum = ~std::uint32_t{0};
inline std::vector<std::uint32_t> home_data(const task_graph& g) {
  std::vector<std::uint32_t> home(g.costs.size(), no_datum);
  std::vector<bool> writes(g.costs.size());
  for (const use& u : g.uses) {
    std::uint32_t& h = home[u.task];
    const bool better = h == no_datum || (u.writes && !writes[u.task]) ||
                        (u.writes == writes[u.task] && g.bytes[u.datum] > g.bytes[h]);
    if (!better) continue;
    h = u.datum;
    writes[u.task] = u.writes;
  }
  return home;
}

/// Where each datum is, for which a user decides. *Requires*: `owner` has a processor for each datum. A task
/// without data goes where the one before it is. *Cost*: as list_schedule.
inline schedule place_by_owner(const task_graph& g, const machine& m, const std::vector<unsigned>& owner) {
  const std::vector<std::uint32_t> home = home_data(g);
  std::vector<unsigned> processor(g.costs.size());
  for (std::size_t t = 0; t < processor.size(); ++t)
    processor[t] = home[t] != no_datum ? owner[home[t]] % m.processors : t != 0 ? processor[t - 1] : 0;
  return list_schedule(g, m, std::move(processor));
}

/// The data in blocks of neighbours, by the order of their first use, such that the tasks of each processor
/// take about equally long. *Cost*: as list_schedule.
inline schedule owner_computes(const task_graph& g, const machine& m) {
  const std::vector<std::uint32_t> home = home_data(g);
  std::vector<double> weight(g.bytes.size());
  double all = 0;
  for (std::size_t t = 0; t < home.size(); ++t)
    if (home[t] != no_datum) weight[home[t]] += g.costs[t], all += g.costs[t];
  std::vector<unsigned> owner(g.bytes.size());
  double before = 0;
  for (std::size_t d = 0; d < owner.size(); ++d) {
    const double middle = before + weight[d] / 2;
    if (all > 0) owner[d] = std::min(m.processors - 1, static_cast<unsigned>(middle / all * m.processors));
    before += weight[d];
  }
  return place_by_owner(g, m, owner);
}

}  // namespace weft::inline WEFT_ABI::placement
