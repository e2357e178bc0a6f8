// SPDX-License-Identifier: BSL-1.0
// The clock of recorded runs, on counters that the test decides: which pieces it measures, and what it
// charges.
#include "support/catch.hpp"

#include <weft/observe/running_clock.hpp>

#include <cstdint>

namespace {

/// Each reading takes 10 ticks of 1 ns.
struct counters {
  static inline std::uint64_t time = 0, away = 0, readings = 0;
  static inline int number = 0;
  static std::uint64_t now() {
    ++readings;
    return time += 10;
  }
  static std::uint64_t processor_time() { return time - away; }
  static int thread() { return number; }
};

struct clocked {
  clocked() {
    counters::time = counters::away = 0;
    counters::number = 0;
    clock.start(1.0);
    counters::readings = 0;
  }
  /// Runs a piece of so many ticks, and others between two pieces. *Returns*: what the clock says, in ticks.
  double run(weft::observe::pace& kind, std::uint64_t length, std::uint64_t between = 30) {
    clock.go_on(kind);
    counters::time += length;
    const auto charged = static_cast<double>(clock.pass()) / weft::observe::parts_of_tick;
    counters::time += between;
    all += charged;
    return charged;
  }

  weft::observe::piece_clock<counters> clock;
  double all = 0;
};

}  // namespace

TEST_CASE_METHOD(clocked, "long pieces are measured one by one") {
  weft::observe::pace kind;
  for (std::uint64_t i = 0; i < 1000; ++i)
    REQUIRE(run(kind, 100 + i % 7) == static_cast<double>(100 + i % 7));
  CHECK(counters::readings == 2000);
}

TEST_CASE_METHOD(clocked, "of short pieces few are measured, and each counts as the mean of its kind") {
  weft::observe::pace shorter, longer;
  for (int i = 0; i < 50'000; ++i) {
    REQUIRE(run(shorter, 5) == 5);
    REQUIRE(run(longer, 80) == 80);
  }
  CHECK(counters::readings < 2 * 2 * 50'000 / 40);
  CHECK(counters::readings > 2 * 2 * 50'000 / 100);
  for (int i = 0; i < 10'000; ++i) run(longer, 20);
  CHECK(run(longer, 20) == Approx(20).margin(1));
}

TEST_CASE_METHOD(clocked, "pieces of which some are long are measured one by one") {
  weft::observe::pace kind;
  double expected = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t length = i % 20 == 0 ? 1000 : 10;
    run(kind, length);
    expected += static_cast<double>(length);
  }
  CHECK(all == expected);
  CHECK(counters::readings == 20'000);
}

TEST_CASE_METHOD(clocked, "a long piece among short ones counts soon, and all are measured for some time") {
  weft::observe::pace kind;
  for (int i = 0; i < 1000; ++i) run(kind, 20);
  while (kind.until_measured == 1) run(kind, 20);  // so that the next one is not measured
  const double before = all;
  run(kind, 30'000);
  CHECK(all - before < 100);
  for (int i = 0; i < 100; ++i) run(kind, 20);
  CHECK(all - before == Approx(30'000 + 100 * 20).margin(3000));
  counters::readings = 0;
  for (int i = 0; i < 1000; ++i) run(kind, 20);
  CHECK(counters::readings == 2000);
  for (int i = 0; i < 64 * 30'000 / 60; ++i) run(kind, 20);
  counters::readings = 0;
  for (int i = 0; i < 1000; ++i) run(kind, 20);
  CHECK(counters::readings < 100);
}

TEST_CASE_METHOD(clocked, "time in which the thread has no processor counts for no piece") {
  weft::observe::pace kind;
  const auto lose = [](std::uint64_t ticks) { counters::time += ticks, counters::away += ticks; };
  clock.go_on(kind);
  lose(100'000);
  counters::time += 500;
  CHECK(static_cast<double>(clock.pass()) / weft::observe::parts_of_tick == Approx(500).margin(50));
  lose(100'000);  // between two pieces
  CHECK(run(kind, 500) == 500);
  for (int i = 0; i < 1000; ++i) run(kind, 20);
  const double before = all;
  lose(100'000);  // while pieces are not measured
  for (int i = 0; i < 100; ++i) run(kind, 20);
  CHECK(all - before == Approx(100 * 20).margin(200));
}

TEST_CASE_METHOD(clocked, "a piece that goes on on another thread counts nothing, and later ones count") {
  weft::observe::pace kind;
  counters::time += 10'000'000;
  // Another thread has run less, as long as this one, or less again.
  for (const std::uint64_t away : {5'000'000u, 0u, 9'000'000u}) {
    CHECK(run(kind, 500) == 500);
    clock.go_on(kind);
    counters::time += 1'000'000;  // the body waits
    ++counters::number;
    counters::away = away;
    CHECK(clock.pass() == 0);
    CHECK(run(kind, 500) == 500);
    ++counters::number;  // between two pieces
    counters::time += 1'000'000;
    counters::away = away / 2;
    CHECK(run(kind, 500) == 500);
    CHECK(run(kind, 100'000) == Approx(100'000).margin(20));
  }
}
