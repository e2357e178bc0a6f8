// SPDX-License-Identifier: BSL-1.0
// Steps that are partitioned by METIS and by Scotch.
#include "step_program.hpp"
#include "support/catch.hpp"

#include <weft/cluster/partition.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/placement/metis.hpp>
#include <weft/placement/scotch.hpp>
#include <weft/weft.hpp>

#include <atomic>

using namespace weft_test;

TEST_CASE("a library places the tasks of a step") {
  for (const weft::placement::method& method :
       {weft::placement::method(weft::placement::metis), weft::placement::method(weft::placement::scotch)})
    for (int processes = 1; processes <= 4; ++processes) {
      const step_program p = random_step(static_cast<std::uint32_t>(processes), 40);
      step_values expected = first_values(p);
      for (int k = 0; k < 30; ++k) interpret(p, expected);
      weft::thread_cluster c(processes);
      std::atomic<int> right{0};
      c.each([&](weft::thread_cluster::process& here) {
        step_objects objects(p);
        weft::partitioned step(here, [&] { objects.fork(); }, {.method = method});
        step.run(30);
        right += objects.values() == expected;
      });
      CHECK(right == processes);
    }
}
