// SPDX-License-Identifier: BSL-1.0
// The graphs for rivals that are told of nodes and edges. A `flow` has add(body), which returns the number of
// a new node, order(before, after), is_first(), which says that the last node added waits for no other, and
// execute().
#pragma once

#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft_bench {

// Empty tasks carry no steps.
template <class flow, class... Steps>
void build_independent(const problem& p, field& f, flow& g, Steps... steps) {
  for (int i = 0; i < p.size; ++i) {
    g.add([own = &f[i], steps...] { touch(*own, steps...); });
    g.is_first();
  }
}

template <class flow>
void build_alternating(const problem& p, field& f, flow& g) {
  for (int i = 0; i < p.size; ++i) {
    g.add([own = &f[i], steps = alternating_steps(i)] { touch(*own, steps); });
    g.is_first();
  }
}

template <class flow>
void build_chain(const problem& p, field& f, flow& g) {
  for (int i = 0; i < p.size; ++i) {
    const std::size_t own = g.add([all = &f[0], i] { append(*all, i); });
    if (i == 0)
      g.is_first();
    else
      g.order(own - 1, own);
  }
}

template <class flow, class... Steps>
void build_wavefront(const problem& p, field& f, flow& g, Steps... steps) {
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j) {
      const std::size_t own = g.add([north = &f.at(i - 1, j), west = &f.at(i, j - 1), here = &f.at(i, j),
                                     steps...] { meet(*north, *west, *here, steps...); });
      if (own == 0) g.is_first();
      if (i > 1) g.order(own - std::size_t(p.size), own);
      if (j > 1) g.order(own - 1, own);
    }
}

template <class flow>
void build_random(field& f, flow& g) {
  constexpr int ends = random_inputs::ends;
  for (int i = ends; i < f.objects(); ++i) {
    const auto& in = f.inputs(i);
    const std::size_t own =
        g.add([a = &f[in[0]], b = &f[in[1]], c = &f[in[2]], out = &f[i]] { gather(*a, *b, *c, *out); });
    bool first = true;
    for (const int input : in)
      if (input >= ends) {
        g.order(std::size_t(input - ends), own);
        first = false;
      }
    if (first) g.is_first();
  }
}

template <class flow>
void build_field(const problem& p, field& f, flow& g) {
  switch (p.shape) {
    case chain:
      return build_chain(p, f, g);
    case wavefront:
      return p.steps == 0 ? build_wavefront(p, f, g) : build_wavefront(p, f, g, p.steps);
    case random_graph:
      return build_random(f, g);
    case alternating:
      return build_alternating(p, f, g);
    default:
      return p.steps == 0 ? build_independent(p, f, g) : build_independent(p, f, g, p.steps);
  }
}

template <class flow>
void build_stencil(cells& c, int rows, long steps, flow& g) {
  const std::size_t width = std::size_t(c.width());
  for (int t = 1; t <= rows; ++t)
    for (int i = 1; i <= c.width(); ++i) {
      const std::size_t own =
          g.add([left = &c.at(t - 1, i - 1), middle = &c.at(t - 1, i), right = &c.at(t - 1, i + 1),
                 out = &c.at(t, i), steps] { blend(*left, *middle, *right, *out, steps); });
      if (t == 1) {
        g.is_first();
        continue;
      }
      if (i > 1) g.order(own - width - 1, own);
      g.order(own - width, own);
      if (i < c.width()) g.order(own - width + 1, own);
    }
}

template <int edge, class flow>
void build_cholesky(matrix<edge>& m, flow& g) {
  const int n = m.tiles();
  constexpr std::size_t none = SIZE_MAX;
  std::vector<std::size_t> last(std::size_t(n * n), none);  // the node that changed a tile last
  const auto last_of = [&](int i, int j) -> std::size_t& { return last[std::size_t(i * n + j)]; };
  // Whoever reads a tile reads its final value, so readers need not be waited for.
  const auto follow = [&](std::size_t own, int i, int j) {
    if (last_of(i, j) != none) g.order(last_of(i, j), own);
  };
  for (int k = 0; k < n; ++k) {
    const std::size_t diagonal = g.add([a = &m.at(k, k)] { factor(*a); });
    if (k == 0) g.is_first();
    follow(diagonal, k, k);
    last_of(k, k) = diagonal;
    for (int i = k + 1; i < n; ++i) {
      const std::size_t own = g.add([l = &m.at(k, k), b = &m.at(i, k)] { solve(*l, *b); });
      follow(own, k, k);
      follow(own, i, k);
      last_of(i, k) = own;
    }
    for (int i = k + 1; i < n; ++i)
      for (int j = k + 1; j <= i; ++j) {
        const std::size_t own =
            g.add([a = &m.at(i, k), b = &m.at(j, k), c = &m.at(i, j)] { multiply(*a, *b, *c); });
        follow(own, i, k);
        if (i != j) follow(own, j, k);
        follow(own, i, j);
        last_of(i, j) = own;
      }
  }
}

/// The outcome of a problem; `seconds_of(rounds, build)` builds a flow with `build(flow)` and executes it so
/// often.
template <class function>
outcome edges_outcome(const problem& p, unsigned workers, const function& seconds_of) {
  if (p.shape == stencil)
    return smallest_task(p, workers, [&](cells& c, int rows, long steps) {
      return seconds_of(1, [&](auto& g) { build_stencil(c, rows, steps, g); });
    });
  if (p.shape == cholesky)
    return cholesky_outcome(p,
                            [&](auto& m) { return seconds_of(1, [&](auto& g) { build_cholesky(m, g); }); });
  return field_outcome(p, [&](const problem& q, field& f) {
    return seconds_of(q.rounds, [&](auto& g) { build_field(q, f, g); });
  });
}

}  // namespace weft_bench
