// SPDX-License-Identifier: BSL-1.0
#include "support/catch.hpp"

#include <weft/task/exposure.hpp>

#include <chrono>
#include <cstdint>

using weft::sched::exposure;
namespace granularity = weft::sched::granularity;

namespace {

constexpr std::uintptr_t root = 0x7FFF'0000;

/// How many of so many forks at this address expose their tasks, and how many at least and at most may do so.
struct tries {
  unsigned exposed = 0, at_most = 0;
};
tries try_to_expose(exposure& e, std::uintptr_t address, unsigned burst, unsigned times) {
  const auto start = exposure::clock::now();
  tries t;
  for (unsigned i = 0; i < times; ++i) t.exposed += e.exposes(address, burst);
  const auto passed = exposure::clock::now() - start;
  t.at_most = granularity::exposed_at_first + burst + 1 +
              static_cast<unsigned>(passed / granularity::exposure_interval);
  return t;
}

}  // namespace

TEST_CASE("some tasks in a row are exposed, and then one in a time") {
  for (const unsigned burst : {1u, 4u}) {
    exposure e;
    e.begin(root, exposure::unlimited);
    const tries t = try_to_expose(e, root - 1'000, burst, 10'000);
    CHECK(t.exposed >= granularity::exposed_at_first + burst);
    CHECK(t.exposed <= t.at_most);
  }
}

TEST_CASE("a fork that comes too early sets the depth limit above itself") {
  exposure e;
  e.begin(root, exposure::unlimited);
  CHECK(e.lowest_address() == 0);
  while (e.exposes(root - 3'200, 1)) {
  }
  CHECK(e.lowest_address() > root - 3'200);
  CHECK(e.lowest_address() <= root - 2'500);

  SECTION("nothing is nearer to the root than the root") {
    while (e.exposes(root, 1)) {
    }
    CHECK(e.lowest_address() == root);
  }
  SECTION("a task that is begun far below counts from where it was forked") {
    const std::uint16_t depth = e.depth_at(root - 640);
    const std::uintptr_t origin = e.origin();
    e.begin_task(root - 50'000, depth);
    CHECK(e.depth_at(root - 50'000) == depth);
    CHECK(e.lowest_address() < root - 50'000 - 2'000);
    CHECK(e.lowest_address() > root - 50'000 - 3'000);
    e.restore_origin(origin);
    CHECK(e.lowest_address() > root - 3'200);
  }
  SECTION("a strand that begins with a task inherits what is left of the limit") {
    exposure thief;
    thief.begin(root, e.deepest_below(e.depth_at(root - 640)));
    CHECK(thief.lowest_address() < root - 2'000);
    CHECK(thief.lowest_address() > root - 3'000);
    thief.begin(root, e.deepest_below(e.depth_at(root - 6'400)));
    CHECK(thief.lowest_address() == root);
  }
  SECTION("hunger lowers the limit, and lifts it where nothing was exposed for a while") {
    const std::uintptr_t before = e.lowest_address();
    e.hear_of_hunger(1'000'000);  // no while is as long
    CHECK(e.lowest_address() < before);
    CHECK(e.lowest_address() > root - 6'400);
    const auto pause = exposure::clock::now() + 3 * granularity::exposure_interval;
    while (exposure::clock::now() < pause) {
    }
    e.hear_of_hunger(1);
    CHECK(e.lowest_address() == 0);
  }
}

TEST_CASE("deep forks are exposed again when there are few others") {
  exposure e;
  e.begin(root, exposure::unlimited);
  while (e.exposes(root - 3'200, 1)) {
  }
  const std::uintptr_t before = e.lowest_address();
  const auto pause = exposure::clock::now() + 4 * granularity::exposure_interval;
  while (exposure::clock::now() < pause) {
  }
  CHECK(e.exposes(root, 1));
  CHECK(e.lowest_address() < before);
}

TEST_CASE("what is owed is exposed once, at any time") {
  exposure e;
  e.begin(root, exposure::unlimited);
  while (e.exposes(root, 1)) {
  }
  CHECK_FALSE(e.owes());
  e.owe();
  CHECK(e.owes());
  CHECK(e.exposes(root - 100'000, 1));
  CHECK_FALSE(e.owes());
}

TEST_CASE("a depth that does not fit is the greatest that does") {
  exposure e;
  e.begin(root, exposure::unlimited);
  CHECK(e.depth_at(root - 0x1000'0000) == UINT16_MAX);
  CHECK(exposure().deepest_below(3) == exposure::unlimited);
}
