// SPDX-License-Identifier: BSL-1.0
// The scheduler's real code on a simulated machine: random programs under thousands of schedules, each of
// which can be repeated from its seed.
#include "property/check.hpp"
#include "property/shrink.hpp"
#include "simulate.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using property::setup;
using simulation::trace;
using weft_test::contains;

namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

std::uint64_t seeds() {
  return number("WEFT_TEST_SEEDS", weft_test::long_run() ? 1'000'000u : 20'000u / weft_test::scale());
}

/// Options of the world of a seed.
setup options_for(std::uint64_t seed) {
  weft_test::random dice(seed ^ 0x51EED);
  static constexpr unsigned spins[] = {0, 2, 20};
  setup how;
  how.seed = seed;
  how.workers = static_cast<unsigned>(1 + dice.below(4));
  how.inlining = !dice.one_in(4);
  how.surplus = static_cast<unsigned>(dice.below(9));
  if (dice.one_in(4)) how.cap = static_cast<unsigned>(1 + dice.below(12));
  how.spin = spins[dice.below(3)];
  return how;
}

struct world {
  trace seen{};
  weft::counters counted{};
  std::string difference{};
};

/// Runs a program twice in one runtime: the second run meets what the first has left.
world run(std::uint64_t seed, const property::program& p) {
  world w;
  const setup how = options_for(seed);
  w.seen = simulation::simulate(seed, [&] {
    weft::runtime rt(how.options());
    for (int i = 0; i < 2 && w.difference.empty(); ++i) w.difference = property::difference(rt, p, how);
    w.counted = rt.counters();
  });
  return w;
}
world run(std::uint64_t seed) { return run(seed, property::generate(seed)); }

/// What a person needs to work on the failure of a seed.
std::string explain(std::uint64_t seed, const std::string& difference) {
  const property::program small = property::shrink(
      property::generate(seed),
      [seed](const property::program& q) { return !run(seed, q).difference.empty(); },
      std::chrono::seconds(20));
  return difference + "\nseed " + std::to_string(seed) + ", shrunk, where " + run(seed, small).difference +
         ":\n" + print(small) + "to repeat it:\n  WEFT_TEST_ONLY=" + std::to_string(seed) +
         " weft_test_simulation 'one simulated world'\n";
}

/// *Returns*: what the world of the seed showed. A difference fails the test.
world check(std::uint64_t seed) {
  const world w = run(seed);
  if (!w.difference.empty()) FAIL(explain(seed, w.difference));
  return w;
}

/// Seeds of worlds that have shown a fault.
constexpr std::uint64_t found[] = {1};

}  // namespace

TEST_CASE("random programs give in every simulated world what the serial program gives") {
  weft::counters sum{};
  std::uint64_t points = 0, switches = 0;
  const auto one = [&](std::uint64_t seed) {
    const world w = check(seed);
    points += w.seen.points;
    switches += w.seen.switches;
    sum.steals += w.counted.steals;
    sum.promotions += w.counted.promotions;
    sum.demotions += w.counted.demotions;
    sum.renames += w.counted.renames;
    sum.folds += w.counted.folds;
    sum.replayed += w.counted.replayed;
    sum.parkings += w.counted.parkings;
    sum.suspensions += w.counted.suspensions;
    sum.sleeps += w.counted.sleeps;
    sum.dropped += w.counted.dropped;
  };
  for (const std::uint64_t seed : found) one(seed);
  for (std::uint64_t i = 0; i < seeds(); ++i)  // half of them always the same
    one(i < seeds() / 2 ? 1 + i : weft_test::seed() % 1'000'000'000 + i);
  std::printf(
      "%llu worlds, %llu points, %llu switches; steals %llu, promotions %llu, demotions %llu, renames %llu, "
      "folds "
      "%llu, replayed %llu, parkings %llu, suspensions %llu, sleeps %llu, dropped %llu\n",
      static_cast<unsigned long long>(seeds()), static_cast<unsigned long long>(points),
      static_cast<unsigned long long>(switches), static_cast<unsigned long long>(sum.steals),
      static_cast<unsigned long long>(sum.promotions), static_cast<unsigned long long>(sum.demotions),
      static_cast<unsigned long long>(sum.renames), static_cast<unsigned long long>(sum.folds),
      static_cast<unsigned long long>(sum.replayed), static_cast<unsigned long long>(sum.parkings),
      static_cast<unsigned long long>(sum.suspensions), static_cast<unsigned long long>(sum.sleeps),
      static_cast<unsigned long long>(sum.dropped));
  weft_test::figure("simulated_worlds", seeds());
  CHECK(sum.steals > 0);
  CHECK(sum.promotions > 0);
  CHECK(sum.renames > 0);
  CHECK(sum.folds > 0);
  CHECK(sum.replayed > 0);
  CHECK(sum.parkings > 0);
  CHECK(sum.suspensions > 0);
  CHECK(sum.sleeps > 0);
  CHECK(sum.dropped > 0);
}

TEST_CASE("a simulated world is the same each time") {
  std::uint64_t same = 0, last = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const world one = run(seed), two = run(seed);
    same += one.seen.hash == two.seen.hash && one.seen.points == two.seen.points;
    CHECK(one.seen.hash != last);
    last = one.seen.hash;
  }
  weft_test::figure("replays_identical", same);
  CHECK(same == 200);
}

// What the printed command runs.
TEST_CASE("one simulated world", "[.]") {
  const world w = check(number("WEFT_TEST_ONLY", 1));
  std::printf("%llu points, %llu switches, hash %llx\n", static_cast<unsigned long long>(w.seen.points),
              static_cast<unsigned long long>(w.seen.switches), static_cast<unsigned long long>(w.seen.hash));
}

TEST_CASE("the simulation notices a wake-up that is lost, and one that never comes") {
  // The sleeper looks before it announces itself.
  const auto lost = [](std::uint64_t seed) {
    simulation::simulate(seed, [] {
      weft::base::event_count bell;
      weft::base::atomic<bool> work{false};
      weft::base::thread sleeper([&] {
        if (work.load()) return;
        bell.wait(bell.prepare());
      });
      work.store(true);
      if (bell.any_waiting()) bell.notify_one();
      sleeper.join();
    });
  };
  const auto report = weft_test::run_in_child([&] {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) lost(seed);
  });
  CHECK(report.exit_code != 0);
  CHECK_THAT(report.output, contains("simulation: nobody can go on, seed"));
  CHECK_THAT(report.output, contains("thread 1 waits for"));
}

TEST_CASE("the simulation notices threads that go round for ever") {
  const auto report = weft_test::run_in_child([] {
    simulation::simulate(
        1,
        [] {
          weft::base::spin_lock one;
          one.lock();
          one.lock();
        },
        10'000);
  });
  CHECK(report.exit_code != 0);
  CHECK_THAT(report.output, contains("no end in sight"));
}
