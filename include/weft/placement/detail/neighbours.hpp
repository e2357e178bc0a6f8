// SPDX-License-Identifier: BSL-1.0
// The arcs of a task graph by the tasks that they begin and end at, and the levels of tasks.
#pragma once

#include <weft/placement/task_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace weft::inline WEFT_ABI::placement {

/// A neighbour of a task, and the delay of what goes between them if they are on different processors.
struct neighbour {
  std::uint32_t task;
  double delay;
};

/// *Thread safety*: constant.
class neighbours {
 public:
  neighbours(const task_graph& g, const machine& m)
      : before_(sorted_(g, m, &arc::to, &arc::from)), after_(sorted_(g, m, &arc::from, &arc::to)) {}

  std::span<const neighbour> before(std::uint32_t task) const noexcept { return before_.of(task); }
  std::span<const neighbour> after(std::uint32_t task) const noexcept { return after_.of(task); }

  /// The longest way from the beginning of each task to the end of the graph. `delays`: with those of all
  /// arcs.
  std::vector<double> bottom_levels(const task_graph& g, bool delays) const {
    std::vector<double> level(g.costs.size());
    for (auto t = static_cast<std::uint32_t>(level.size()); t-- > 0;) {
      for (const neighbour& n : after(t))
        level[t] = std::max(level[t], level[n.task] + (delays ? n.delay : 0));
      level[t] += g.costs[t];
    }
    return level;
  }

 private:
  struct lists {
    std::vector<std::size_t> begin;
    std::vector<neighbour> all;
    std::span<const neighbour> of(std::uint32_t t) const noexcept {
      return {all.data() + begin[t], all.data() + begin[t + 1]};
    }
  };
  static lists sorted_(const task_graph& g, const machine& m, std::uint32_t arc::* at,
                       std::uint32_t arc::* to) {
    lists l;
    l.begin.assign(g.costs.size() + 2, 0);
    for (const arc& a : g.arcs) ++l.begin[a.*at + 2];
    for (std::size_t i = 2; i < l.begin.size(); ++i) l.begin[i] += l.begin[i - 1];
    l.all.resize(g.arcs.size());
    for (const arc& a : g.arcs) l.all[l.begin[a.*at + 1]++] = {a.*to, m.delay(a.bytes)};
    return l;
  }

  lists before_, after_;
};

}  // namespace weft::inline WEFT_ABI::placement
