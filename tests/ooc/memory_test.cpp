// SPDX-License-Identifier: BSL-1.0
// Sweeps whose allocations fail: they report it, and the file holds the last finished pass.
#include "fault/failing_allocations.hpp"
#include "fault/waiting.hpp"
#include "ooc/sweeps.hpp"

namespace ooc = weft::ooc;
using weft_test::kernel_23;
using weft_test::value_at;

TEST_CASE("sweeps report that memory is exhausted, whenever it is, and leave the last finished pass") {
  if (!replaced) return;
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 2});
  weft_test::calibrate(in);
  for (const ooc::policy policy : {ooc::policy::pool, ooc::policy::chained, ooc::policy::overlay})
    for (const bool from_then_on : {false, true}) {
      weft_test::grid g(
          in / "grid",
          {.rows = 40, .columns = 20, .tile_rows = 8, .overwrite = true, .io = {.in_flight = 2}});
      g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
      std::uint64_t before = 0;
      INFO(ooc::name_of(policy));
      const long points = fail_each(
          from_then_on,
          [&] {
            before = g.sweeps();
            return ooc::sweep(
                       rt, g, 1, kernel_23{},
                       {.memory = 1 << 20, .policy = policy, .disk = weft_test::some_disk, .kernel = "k"})
                       .sweeps == 1;
          },
          [&](long) {
            CHECK((g.sweeps() == before || g.sweeps() == before + 1));
            CHECK(weft_test::works(rt));
          });
      CHECK(points > 20);
      CHECK(weft_test::holds(g, weft_test::plain_loops(40, 20, g.sweeps())));
    }
}

TEST_CASE("sweeps begin with giving back the memory of rows that were read") {
  if (!replaced) return;
  const weft_test::scratch in(weft_test::medium::memory);
  weft::runtime rt({.workers = 1});
  weft_test::grid g(in / "grid", {.rows = 40, .columns = 20, .tile_rows = 8});
  g.fill(rt, [](std::size_t r, std::size_t c, int field) { return value_at(r, c, field); });
  std::vector<double> row(22);
  const long before = blocks;
  g.read_row(9, row);
  CHECK(blocks > before);
  ooc::sweep(rt, g, 0, kernel_23{});  // it begins, and that is all
  CHECK(blocks == before);
  g.read_row(9, row);
  CHECK(row[5] == value_at(9, 5, 0));
}
