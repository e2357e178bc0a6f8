// SPDX-License-Identifier: BSL-1.0
// Counters: each event has its own total, and readers see numbers while a worker counts.
#include "support/catch.hpp"

#include <weft/observe/counters.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <thread>

using weft::observe::worker_counters;

namespace {

std::uint64_t sum_of(const weft::counters& c) {
  return c.deferred + c.inlined + c.dropped + c.steals + c.capped + c.divisions + c.promotions + c.demotions +
         c.folds + c.renames + c.replayed + c.steal_attempts + c.barriers + c.barriers_refused + c.parkings +
         c.suspensions + c.sleeps + c.wakes + c.contexts + c.stack_high_water;
}

}  // namespace

TEST_CASE("counters begin at zero") {
  weft::counters sum;
  CHECK(sum_of(sum) == 0);
  const worker_counters w;
  w.add_to(sum);
  CHECK(sum_of(sum) == 0);
}

TEST_CASE("each event is added to the member of its name") {
  struct pair {
    worker_counters::event event;
    std::uint64_t weft::counters::* member;
  };
  const pair all[] = {
      {worker_counters::deferred, &weft::counters::deferred},
      {worker_counters::inlined, &weft::counters::inlined},
      {worker_counters::dropped, &weft::counters::dropped},
      {worker_counters::steals, &weft::counters::steals},
      {worker_counters::capped, &weft::counters::capped},
      {worker_counters::divisions, &weft::counters::divisions},
      {worker_counters::promotions, &weft::counters::promotions},
      {worker_counters::demotions, &weft::counters::demotions},
      {worker_counters::replayed, &weft::counters::replayed},
      {worker_counters::folds, &weft::counters::folds},
      {worker_counters::renames, &weft::counters::renames},
      {worker_counters::steal_attempts, &weft::counters::steal_attempts},
      {worker_counters::barriers, &weft::counters::barriers},
      {worker_counters::barriers_refused, &weft::counters::barriers_refused},
      {worker_counters::parkings, &weft::counters::parkings},
      {worker_counters::suspensions, &weft::counters::suspensions},
      {worker_counters::sleeps, &weft::counters::sleeps},
      {worker_counters::wakes, &weft::counters::wakes},
  };
  CHECK(std::size(all) == worker_counters::event_count);
  for (const pair& p : all) {
    worker_counters w;
    w.add(p.event);
    w.add(p.event, 41);
    weft::counters sum;
    w.add_to(sum);
    CHECK(sum.*p.member == 42);
    CHECK(sum_of(sum) == 42);
  }
}

TEST_CASE("the counts of several workers are summed") {
  worker_counters a, b;
  a.add(worker_counters::steals, 3);
  b.add(worker_counters::steals, 4);
  b.add(worker_counters::sleeps, 5);
  weft::counters sum;
  a.add_to(sum);
  b.add_to(sum);
  CHECK(sum.steals == 7);
  CHECK(sum.sleeps == 5);
}

TEST_CASE("a count may be read while its worker goes on") {
  worker_counters w;
  constexpr std::uint64_t n = 200'000;
  std::thread worker([&] {
    for (std::uint64_t i = 0; i < n; ++i) w.add(worker_counters::deferred);
  });
  std::uint64_t last = 0;
  bool grows = true;
  while (last < n) {
    weft::counters sum;
    w.add_to(sum);
    grows = grows && sum.deferred >= last;
    last = sum.deferred;
  }
  worker.join();
  CHECK(grows);
  CHECK(last == n);
}
