// SPDX-License-Identifier: BSL-1.0
// The graphs as oneTBB flow graphs: a node per task, an edge per dependency; with and without the time to
// build them.
#include "config.hpp"
#include "stencil.hpp"
#include "tiles.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <deque>
#include <vector>

namespace weft_bench {
namespace {

using tbb::flow::continue_msg;
using node = tbb::flow::continue_node<continue_msg>;

/// A graph whose nodes are known by their numbers.
class flow {
 public:
  template <class function>
  std::size_t add(const function& body) {
    nodes_.emplace_back(graph_, [body](const continue_msg& m) {
      body();
      return m;
    });
    return nodes_.size() - 1;
  }
  void order(std::size_t before, std::size_t after) { tbb::flow::make_edge(nodes_[before], nodes_[after]); }
  /// Says that the last node added waits for no other.
  void is_first() { first_.push_back(&nodes_.back()); }
  void execute() {
    for (node* n : first_) n->try_put(continue_msg());
    graph_.wait_for_all();
  }

 private:
  tbb::flow::graph graph_;
  std::deque<node> nodes_;
  std::vector<node*> first_;
};

template <long steps>
void build_independent(const problem& p, field& f, flow& g) {
  for (int i = 0; i < p.size; ++i) {
    g.add([own = &f[i]] { touch<steps>(*own); });
    g.is_first();
  }
}

void build_chain(const problem& p, field& f, flow& g) {
  for (int i = 0; i < p.size; ++i) {
    const std::size_t own = g.add([all = &f[0], i] { append(*all, i); });
    if (i == 0)
      g.is_first();
    else
      g.order(own - 1, own);
  }
}

template <long steps>
void build_wavefront(const problem& p, field& f, flow& g) {
  for (int i = 1; i <= p.size; ++i)
    for (int j = 1; j <= p.size; ++j) {
      const std::size_t own = g.add([north = &f.at(i - 1, j), west = &f.at(i, j - 1), here = &f.at(i, j)] {
        meet<steps>(*north, *west, *here);
      });
      if (own == 0) g.is_first();
      if (i > 1) g.order(own - std::size_t(p.size), own);
      if (j > 1) g.order(own - 1, own);
    }
}

void build_field(const problem& p, field& f, flow& g) {
  switch (p.shape) {
    case chain:
      return build_chain(p, f, g);
    case wavefront:
      return build_wavefront<0>(p, f, g);
    case wavefront_busy:
      return build_wavefront<microsecond>(p, f, g);
    case pending:
      return build_independent<5 * microsecond>(p, f, g);
    default:
      return build_independent<0>(p, f, g);
  }
}

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

void build_cholesky(matrix& m, flow& g) {
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

/// Builds a graph with `build(graph)` and executes it `rounds` times. *Returns*: the time; that of building
/// counts where `whole` says so.
template <class function>
double seconds_of(tbb::task_arena& arena, bool whole, int rounds, const function& build) {
  return arena.execute([&] {
    const stopwatch clock;
    flow g;
    build(g);
    const double built = clock.seconds();
    for (int round = 0; round < rounds; ++round) g.execute();
    return clock.seconds() - (whole ? 0 : built);
  });
}

outcome run_with(int index, unsigned workers, bool whole) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena{int(workers)};
  const problem& p = problems[index];
  if (p.shape == stencil)
    return smallest_task(p, workers, [&](cells& c, int rows, long steps) {
      return seconds_of(arena, whole, 1, [&](flow& g) { build_stencil(c, rows, steps, g); });
    });
  if (p.shape == cholesky)
    return cholesky_outcome(
        p, [&](matrix& m) { return seconds_of(arena, whole, 1, [&](flow& g) { build_cholesky(m, g); }); });
  return field_outcome(p, [&](const problem& q, field& f) {
    return seconds_of(arena, whole, q.rounds, [&](flow& g) { build_field(q, f, g); });
  });
}

outcome run(int index, unsigned workers) { return run_with(index, workers, true); }
outcome run_built(int index, unsigned workers) { return run_with(index, workers, false); }

const registration entry("tbb-flow", run, fits_graph);
const registration built("tbb-flow-built", run_built, fits_graph);

}  // namespace
}  // namespace weft_bench
