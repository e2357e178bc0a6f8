// SPDX-License-Identifier: BSL-1.0
// The data of a task graph as a graph that libraries partition: how long their tasks take, and how much goes
// between them.
#pragma once

#include <weft/placement/owner_computes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace weft::inline WEFT_ABI::placement {

/// Symmetric, without loops and parallel edges, as compressed rows; weights are whole numbers from 1.
template <class Integer>
struct data_graph {
  std::vector<Integer> begin{0};       ///< of the neighbours of each vertex, and one behind the last
  std::vector<Integer> neighbour;      ///< the vertices at the other ends of its edges
  std::vector<Integer> edge_weight;    ///< in proportion to the bytes that are sent if the edge is cut
  std::vector<Integer> vertex_weight;  ///< in proportion to the time of the tasks at the datum
  std::vector<std::uint32_t> datum;    ///< of each vertex
};

/// The data at which tasks are executed are the vertices. A datum that such a task uses besides its own is
/// connected with that by as many bytes. *Throws*: std::bad_alloc. *Cost*: O(u log u) for u uses.
template <class Integer>
data_graph<Integer> make_data_graph(const task_graph& g) {
  const std::vector<std::uint32_t> home = home_data(g);
  std::vector<double> work(g.bytes.size());
  std::vector<Integer> vertex(g.bytes.size(), Integer(-1));
  double all_work = 0, all_bytes = 0;
  for (std::size_t t = 0; t < home.size(); ++t)
    if (home[t] != no_datum) {
      vertex[home[t]] = 0;
      work[home[t]] += g.costs[t];
      all_work += g.costs[t];
    }
  constexpr double most = 1 << 28;  // of all weights together: they are numbers of 32 bits
  const auto whole = [](double part, double all) {
    return static_cast<Integer>(std::max(1.0, all > 0 ? std::floor(part / all * most) : 1.0));
  };
  data_graph<Integer> made;
  for (std::uint32_t d = 0; d < vertex.size(); ++d)
    if (vertex[d] == 0) {
      vertex[d] = static_cast<Integer>(made.datum.size());
      made.datum.push_back(d);
      made.vertex_weight.push_back(whole(work[d], all_work));
    }
  struct edge {
    Integer from, to;
    double bytes;
  };
  std::vector<edge> edges;
  for (const use& u : g.uses) {
    const Integer a = vertex[u.datum], b = home[u.task] != no_datum ? vertex[home[u.task]] : Integer(-1);
    if (a < 0 || b < 0 || a == b) continue;
    edges.push_back({a, b, g.bytes[u.datum] + 1});
    edges.push_back({b, a, g.bytes[u.datum] + 1});
    all_bytes += 2 * (g.bytes[u.datum] + 1);
  }
  std::sort(edges.begin(), edges.end(),
            [](const edge& x, const edge& y) { return x.from != y.from ? x.from < y.from : x.to < y.to; });
  for (std::size_t i = 0; i < edges.size();) {
    const edge& e = edges[i];
    while (static_cast<Integer>(made.begin.size()) <= e.from)
      made.begin.push_back(static_cast<Integer>(made.neighbour.size()));
    double bytes = 0;
    std::size_t j = i;
    for (; j < edges.size() && edges[j].from == e.from && edges[j].to == e.to; ++j) bytes += edges[j].bytes;
    made.neighbour.push_back(e.to);
    made.edge_weight.push_back(whole(bytes, all_bytes));
    i = j;
  }
  while (made.begin.size() <= made.datum.size())
    made.begin.push_back(static_cast<Integer>(made.neighbour.size()));
  return made;
}

/// The schedule for the parts that a library has found; data that are no vertices are nobody's.
template <class Integer>
schedule place_parts(const task_graph& g, const machine& m, const data_graph<Integer>& d,
                     const std::vector<Integer>& part) {
  std::vector<unsigned> owner(g.bytes.size());
  for (std::size_t v = 0; v < part.size(); ++v) owner[d.datum[v]] = static_cast<unsigned>(part[v]);
  return place_by_owner(g, m, owner);
}

}  // namespace weft::inline WEFT_ABI::placement
