// SPDX-License-Identifier: BSL-1.0
// A search in a runtime of one process, and in all processes of a cluster, in turns, with one worker each.
#pragma once

#include "turns.hpp"

#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <cstdlib>
#include <stdexcept>

namespace weft_bench {

/// `count()` is the body that forks the search, and returns what it has counted. Prints for process 0.
template <class Count>
int time_search(int argc, char** argv, const char* what, Count count) {
  const weft::cluster_options options{.runtime = {.workers = 1}};
  weft::cluster all(argc, argv, options);
  const int turns = argc > 1 ? std::atoi(argv[1]) : 5;
  std::vector<double> apart, together;
  for (int i = 0; i < turns; ++i) {
    long one = 0;
    if (all.rank() == 0) {  // the others wait in the next run
      weft::runtime alone(options.runtime);
      apart.push_back(seconds_of([&] { one = alone.run(count); }));
    }
    long counted = 0;
    all.run([] {});  // where all come together
    const double seconds = seconds_of([&] { counted = all.run(count); });
    if (all.rank() == 0) {
      together.push_back(seconds);
      if (counted != one) throw std::runtime_error("the counts differ");
    }
  }
  if (all.rank() != 0) return 0;
  print_turns(what, "alone", apart, "cluster", together);
  const weft::cluster_counters c = all.counters();
  std::printf("process 0 of %d: %llu tasks sent, %llu received, %llu messages, %llu bytes\n", all.size(),
              static_cast<unsigned long long>(c.closures_sent),
              static_cast<unsigned long long>(c.closures_received),
              static_cast<unsigned long long>(c.messages), static_cast<unsigned long long>(c.bytes));
  return 0;
}

}  // namespace weft_bench
