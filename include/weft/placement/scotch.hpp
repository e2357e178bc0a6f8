// SPDX-License-Identifier: BSL-1.0
// Placement by Scotch, which partitions the data; needs the target weft::scotch.
#pragma once

#if !__has_include(<scotch/scotch.h>) && !__has_include(<scotch.h>)
#error "weft: <weft/placement/scotch.hpp> needs Scotch (Debian: libscotch-dev); link weft::scotch"
#endif

#include <weft/base/error.hpp>
#include <weft/placement/data_graph.hpp>

#include <cstdint>
#include <cstdio>

extern "C" {
#if __has_include(<scotch/scotch.h>)
#include <scotch/scotch.h>
#else
#include <scotch.h>
#endif
}

#include <memory>
#include <numeric>

namespace weft::inline WEFT_ABI::placement {

/// Parts that take about equally long, such that few bytes go between them; tasks are executed where what
/// they write is. The same for the same graph. *Throws*: weft::error if Scotch fails. *Thread safety*: one
/// thread at a time. *Source*: Pellegrini and Roman, "Experimental analysis of the dual recursive
/// bipartitioning algorithm for static mapping" (1996).
inline schedule scotch(const task_graph& g, const machine& m) {
  data_graph<SCOTCH_Num> d = make_data_graph<SCOTCH_Num>(g);
  std::vector<SCOTCH_Num> part(d.datum.size());
  if (part.size() <= m.processors) {
    std::iota(part.begin(), part.end(), SCOTCH_Num{0});
  } else if (m.processors > 1) {
    const auto require = [](int result) {
      if (result != 0) throw error("weft: Scotch cannot partition a graph");
    };
    SCOTCH_Graph graph;
    SCOTCH_Strat strategy;
    require(SCOTCH_graphInit(&graph));
    const std::unique_ptr<SCOTCH_Graph, void (*)(SCOTCH_Graph*)> at_end(&graph, &SCOTCH_graphExit);
    require(SCOTCH_stratInit(&strategy));
    const std::unique_ptr<SCOTCH_Strat, void (*)(SCOTCH_Strat*)> then(&strategy, &SCOTCH_stratExit);
    require(SCOTCH_graphBuild(&graph, 0, static_cast<SCOTCH_Num>(part.size()), d.begin.data(), nullptr,
                              d.vertex_weight.data(), nullptr, static_cast<SCOTCH_Num>(d.neighbour.size()),
                              d.neighbour.data(), d.edge_weight.data()));
    SCOTCH_randomReset();
    require(SCOTCH_graphPart(&graph, static_cast<SCOTCH_Num>(m.processors), &strategy, part.data()));
  }
  return place_parts(g, m, d, part);
}

}  // namespace weft::inline WEFT_ABI::placement
