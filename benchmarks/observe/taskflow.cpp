// SPDX-License-Identifier: BSL-1.0
// Independent tasks in Taskflow, with and without its observer for TFProf. A program of its own, which
// bench_observe starts.
#include "bodies.hpp"

#include <taskflow/taskflow.hpp>
#if __has_include(<taskflow/observer/tfprof.hpp>)
#include <taskflow/observer/tfprof.hpp>
#endif

#include <memory>

int main(int argc, char** argv) {
  using namespace weft_bench;
  const auto times = [](unsigned workers, bool traced, std::vector<double>& long_ones,
                        std::vector<double>& empty_ones) {
    tf::Executor executor(workers);
    std::shared_ptr<tf::TFProfObserver> observer;
    if (traced) observer = executor.make_observer<tf::TFProfObserver>();
    tf::Taskflow of_long, of_empty;
    for (int i = 0; i < long_tasks; ++i) of_long.emplace(ten_microseconds).name("task");
    for (int i = 0; i < empty_tasks; ++i) of_empty.emplace([] {}).name("task");
    for (int i = 0; i < 6; ++i) {
      const double l = seconds_of([&] { executor.run(of_long).wait(); });
      const double e = seconds_of([&] { executor.run(of_empty).wait(); });
      if (observer) observer->clear();
      if (i == 0) continue;  // warms up
      long_ones.push_back(l);
      empty_ones.push_back(e);
    }
  };
  return print_times(argc, argv, times);
}
