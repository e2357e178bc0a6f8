// SPDX-License-Identifier: BSL-1.0
// Placement by a library: valid schedules, parts of equal size, and a cut as small as it can be.
#include "support/catch.hpp"
#include "validator.hpp"

#ifdef WEFT_TEST_METIS
#include <weft/placement/metis.hpp>
static constexpr auto& place = weft::placement::metis;
#else
#include <weft/placement/scotch.hpp>
static constexpr auto& place = weft::placement::scotch;
#endif

using namespace weft_test;

TEST_CASE("schedules of random graphs are valid, and the same again") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const auto g = random_graph(seed, seed % 60 + 1, 1 + seed % 13, 1e-3);
    for (const unsigned processors : {1u, 2u, 3u, 8u}) {
      const placement::machine m{processors, 1e-5, 1e9};
      const auto s = place(g, m);
      INFO("seed " << seed << ", " << processors << " processors");
      REQUIRE(faults(g, m, s) == "");
      REQUIRE(place(g, m).processor == s.processor);
    }
  }
}

TEST_CASE("a grid is cut where few cells meet") {
  const auto g = grid(8);
  const placement::machine m{4, 1e-6, 1e9};
  const auto s = place(g, m);
  CHECK(faults(g, m, s) == "");
  std::vector<int> size(4);
  for (const unsigned p : s.processor) ++size[p];
  for (const int n : size) CHECK(n == 16);
  CHECK(cut(s, 8) <= 20);  // 16 is the least there is, blocks of rows have 24
}

TEST_CASE("tasks without data, and data without tasks, do no harm") {
  placement::task_graph g;
  const placement::machine m{3, 1e-6, 1e9};
  CHECK(faults(g, m, place(g, m)) == "");
  g.costs = {1, 1};
  g.bytes = {8};
  CHECK(faults(g, m, place(g, m)) == "");
}
