// SPDX-License-Identifier: BSL-1.0
// For how long thieves keep away: after searches in vain, and from strands with nothing but graphs.
#include "support/catch.hpp"

#include <weft/task/frame.hpp>
#include <weft/task/steal_cooldown.hpp>

#include <chrono>

using weft::sched::deadline;
using weft::sched::frame;
using weft::sched::steal_cooldown;
using weft::sched::visit_pause;
namespace granularity = weft::sched::granularity;

namespace {

using clock = deadline::clock;

/// When a cooldown ends after a search of this length, counted from before.
clock::duration after_search(steal_cooldown& c, const frame& f, clock::duration search) {
  const auto start = clock::now();
  c.begin_after_search(f, search, {});
  return c.last() - start;
}

}  // namespace

TEST_CASE("the first search in vain of a strand keeps thieves away for less than later ones") {
  steal_cooldown c;
  frame one, other;
  constexpr auto search = std::chrono::hours(1);  // whatever passes meanwhile is nothing
  constexpr auto first = granularity::first_fruitless_search * search,
                 later = granularity::fruitless_search * search;
  const auto d = after_search(c, one, search);
  CHECK(d >= first);
  CHECK(d < later);
  CHECK(c.covers(one));
  CHECK_FALSE(c.covers(other));
  CHECK(after_search(c, one, search) >= later);
  c.end();  // something was worth a theft: that says nothing of searches
  CHECK(after_search(c, other, search) >= later);
  c.reset();
  CHECK(after_search(c, one, search) < later);
}

TEST_CASE("a cooldown after a search lasts as long as one that was known before") {
  steal_cooldown c;
  frame f;
  const auto least = clock::now() + std::chrono::hours(1);
  c.begin_after_search(f, std::chrono::nanoseconds(1), least);
  CHECK(c.last() == least);
}

TEST_CASE("visits pause longer each time, until there is something") {
  visit_pause p;
  CHECK_FALSE(p.goes_on());
  for (auto length = granularity::first_visit_pause; length <= granularity::longest_visit_pause;
       length *= 2) {
    const auto start = clock::now();
    p.begin();
    CHECK(p.last() >= start + length);
    CHECK(p.last() <= clock::now() + length);
  }
  const auto start = clock::now();
  p.begin();
  CHECK(p.last() <= clock::now() + granularity::longest_visit_pause);
  CHECK(p.last() >= start + granularity::longest_visit_pause);
  CHECK(p.goes_on());
  p.end();
  CHECK_FALSE(p.goes_on());
  p.reset();
  p.begin();
  CHECK(p.last() <= clock::now() + granularity::first_visit_pause);
}
