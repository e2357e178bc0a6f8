// SPDX-License-Identifier: BSL-1.0
// The graphs as oneTBB flow graphs: a node per task, an edge per dependency; with and without the time to
// build them.
#include "edges.hpp"

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
  return edges_outcome(problems[index], workers, [&](int rounds, const auto& build) {
    return seconds_of(arena, whole, rounds, build);
  });
}

outcome run(int index, unsigned workers) { return run_with(index, workers, true); }
outcome run_built(int index, unsigned workers) { return run_with(index, workers, false); }

const registration entry("tbb-flow", run, fits_flat_graph);
const registration built("tbb-flow-built", run_built, fits_flat_graph);

}  // namespace
}  // namespace weft_bench
