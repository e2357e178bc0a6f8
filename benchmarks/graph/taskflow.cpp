// SPDX-License-Identifier: BSL-1.0
// The graphs as task graphs of Taskflow: a task per task, an edge per dependency; with and without the time
// to build them.
#include "edges.hpp"

#include <taskflow/taskflow.hpp>

#include <vector>

namespace weft_bench {
namespace {

class flow {
 public:
  explicit flow(tf::Executor& by) : by_(by) {}
  template <class function>
  std::size_t add(const function& body) {
    tasks_.push_back(graph_.emplace(body));
    return tasks_.size() - 1;
  }
  void order(std::size_t before, std::size_t after) { tasks_[before].precede(tasks_[after]); }
  void is_first() {}
  void execute() { by_.run(graph_).wait(); }

 private:
  tf::Executor& by_;
  tf::Taskflow graph_;
  std::vector<tf::Task> tasks_;
};

outcome run_with(int index, unsigned workers, bool whole) {
  tf::Executor executor(workers);
  return edges_outcome(problems[index], workers, [&](int rounds, const auto& build) {
    const stopwatch clock;
    flow g(executor);
    build(g);
    const double built = clock.seconds();
    for (int round = 0; round < rounds; ++round) g.execute();
    return clock.seconds() - (whole ? 0 : built);
  });
}

outcome run(int index, unsigned workers) { return run_with(index, workers, true); }
outcome run_built(int index, unsigned workers) { return run_with(index, workers, false); }

const registration entry("taskflow", run, fits_flat_graph);
const registration built("taskflow-built", run_built, fits_flat_graph);

}  // namespace
}  // namespace weft_bench
