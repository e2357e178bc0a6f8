// SPDX-License-Identifier: BSL-1.0
// Placement by METIS, which partitions the data; needs the target weft::metis.
#pragma once

#if !__has_include(<metis.h>)
#error "weft: <weft/placement/metis.hpp> needs METIS (Debian: libmetis-dev); link weft::metis"
#endif

#include <weft/base/error.hpp>
#include <weft/placement/data_graph.hpp>

#include <metis.h>

#include <numeric>
#include <string>

namespace weft::inline WEFT_ABI::placement {

/// Parts that take about equally long, such that few bytes go between them; tasks are executed where what
/// they write is. The same for the same graph. *Throws*: weft::error if METIS fails. *Source*: Karypis and
/// Kumar, "Analysis of multilevel graph partitioning" (1995).
inline schedule metis(const task_graph& g, const machine& m) {
  data_graph<idx_t> d = make_data_graph<idx_t>(g);
  auto vertices = static_cast<idx_t>(d.datum.size()), constraints = idx_t{1},
       parts = static_cast<idx_t>(m.processors), cut = idx_t{0};
  std::vector<idx_t> part(d.datum.size());
  if (vertices <= parts) {
    std::iota(part.begin(), part.end(), idx_t{0});
  } else if (parts > 1) {
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    const int result = METIS_PartGraphKway(&vertices, &constraints, d.begin.data(), d.neighbour.data(),
                                           d.vertex_weight.data(), nullptr, d.edge_weight.data(), &parts,
                                           nullptr, nullptr, options, &cut, part.data());
    if (result != METIS_OK)
      throw error("weft: METIS cannot partition a graph: status " + std::to_string(result));
  }
  return place_parts(g, m, d, part);
}

}  // namespace weft::inline WEFT_ABI::placement
