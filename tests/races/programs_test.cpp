// SPDX-License-Identifier: BSL-1.0
// Random programs, which declare all that they access, have no race: Thread Sanitizer ends the process if it
// sees one.
#include "property/check.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/weft.hpp>

#include <cstdint>

TEST_CASE("random programs are silent where only declared accesses order them") {
  const std::uint64_t programs = weft_test::long_run() ? 40'000 : 600;
  for (const unsigned workers : {1u, 3u}) {
    property::setup how;
    how.workers = workers;
    weft::runtime rt(how.options());
    for (std::uint64_t i = 0; i < programs; ++i) {
      how.seed = i % 4 < 2 ? i : weft_test::seed() % 1'000'000'000 + i;
      INFO("seed " << how.seed << ", workers " << workers);
      property::program p = property::generate(how.seed);
      // Tasks run at once here, so a sync may meet the exception of a body that was spawned before its task.
      if (property::throws(p.root)) property::spawn_nothing(p.root);
      REQUIRE(property::difference(rt, p, how) == "");
    }
  }
  weft_test::figure("ordered_programs_silent", 2 * programs);
}
