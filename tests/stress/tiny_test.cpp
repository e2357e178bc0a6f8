// SPDX-License-Identifier: BSL-1.0
// Frames of tiny tasks: they are left to their owner, but what is long among them is not.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

/// A runtime whose strands keep many closures, so that frames are long.
struct crowd : weft::runtime {
  explicit crowd(unsigned workers) : runtime({.workers = workers, .inlining = false, .cap = 1u << 22}) {}
};

std::uint64_t step(std::uint64_t x, std::uint64_t with) { return x * 6364136223846793005u + with; }

/// What this build can be asked for: where a sanitizer slows tasks down they are not tiny.
bool tiny_here() { return !weft_test::sanitized || WEFT_TINY_TASK_NS > 1'000'000; }

/// Whether a test goes on: for so many rounds, and until it has seen what it is for.
bool more(int round, int rounds, std::uint64_t demotions) {
  return round < rounds || (tiny_here() && demotions == 0 && round < 50 * rounds);
}

/// Two tasks that wait for each other, for a while: they meet if another worker comes for the second.
struct pair {
  std::atomic<int> here{0};
  bool meet() {
    ++here;
    return weft_test::wait_until([this] { return here >= 2; }, milliseconds(50));
  }
};

}  // namespace

TEST_CASE("tiny tasks are left to their owner, and a second worker comes for the long ones among them") {
  const int rounds = 10;
  const int tiny = static_cast<int>(20'000 / weft_test::scale());
  int met = 0;
  std::uint64_t demotions = 0;
  for (const unsigned workers : {2u, 4u}) {
    crowd rt(workers);
    std::vector<pair> pairs(rounds);
    std::vector<int> ran(static_cast<std::size_t>(rounds * tiny));
    std::atomic<int> met_here{0};
    rt.run([&] {
      int* next = ran.data();
      for (pair& p : pairs) {
        for (int i = 0; i < tiny; ++i) weft::fork([](int& n) { ++n; }, weft::update(weft::borrow(*next++)));
        for (int i = 0; i < 2; ++i) weft::fork([&p, &met_here] { met_here += p.meet(); });
      }
    });
    met += met_here;
    demotions += rt.counters().demotions;
    CHECK(ran == std::vector<int>(ran.size(), 1));
  }
  std::printf("pairs: met %d, demotions %llu\n", met, static_cast<unsigned long long>(demotions));
  CHECK(met > 0);
}

TEST_CASE("long chains of tiny tasks give what the serial loop gives, alone and side by side") {
  const std::size_t n = 300'000 / weft_test::scale();
  std::uint64_t promotions = 0, demotions = 0;
  for (int round = 0; more(round, 10, demotions); ++round)
    for (const std::size_t chains : {1u, 3u, 1000u}) {
      crowd rt(2);
      std::vector<std::uint64_t> values(chains, 1), expected(chains, 1);
      for (std::size_t i = 0; i < n; ++i) expected[i % chains] = step(expected[i % chains], i);
      rt.run([&] {
        for (std::size_t i = 0; i < n; ++i)
          weft::fork([i](std::uint64_t& x) { x = step(x, i); },
                     weft::update(weft::borrow(values[i % chains])));
      });
      CHECK(values == expected);
      promotions += rt.counters().promotions;
      demotions += rt.counters().demotions;
    }
  std::printf("chains: promotions %llu, demotions %llu\n", static_cast<unsigned long long>(promotions),
              static_cast<unsigned long long>(demotions));
  CHECK(promotions > 0);
  if (tiny_here()) CHECK(demotions > 0);
}

TEST_CASE("an exception counts at its place, also behind what a graph has left to the owner") {
  const std::size_t n = 100'000 / weft_test::scale();
  weft_test::random dice(weft_test::seed());
  std::uint64_t demotions = 0;
  for (int round = 0; more(round, 20, demotions); ++round) {
    crowd rt(2);
    const std::size_t first = n / 2 + dice.below(n / 2), second = first + dice.below(n - first);
    std::vector<std::uint8_t> ran(n);
    std::optional<std::size_t> caught;
    try {
      rt.run([&] {
        for (std::size_t i = 0; i < n; ++i)
          weft::fork([&ran, i, throws = i == first || i == second] {
            ran[i] = 1;
            if (throws) throw i;
          });
      });
    } catch (std::size_t i) {
      caught = i;
    }
    CHECK(caught == first);
    for (std::size_t i = 0; i <= first; ++i)
      if (ran[i] == 0) FAIL("task " << i << " was dropped, but " << first << " threw");
    demotions += rt.counters().demotions;
  }
  std::printf("exceptions: demotions %llu\n", static_cast<unsigned long long>(demotions));
  if (tiny_here()) CHECK(demotions > 0);
}

TEST_CASE("tiny tasks that share objects in turn or contribute to them are left to the owner too") {
  const std::size_t n = 100'000 / weft_test::scale();
  std::uint64_t demotions = 0;
  for (int round = 0; round < 5; ++round) {
    crowd rt(2);
    long commuted = 0;
    weft::shared<long> sum(0L);
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i) {
        if (i % 3 == 0)
          weft::fork([](long& x) { ++x; }, weft::commute(weft::borrow(commuted)));
        else
          weft::fork([i](auto x) { x += static_cast<long>(i % 3); }, weft::reduce(sum, std::plus<>{}));
      }
    });
    CHECK(commuted == static_cast<long>((n + 2) / 3));
    CHECK(sum.get() == static_cast<long>((n + 1) / 3 + 2 * (n / 3)));
    demotions += rt.counters().demotions;
  }
  std::printf("shared in turn: demotions %llu\n", static_cast<unsigned long long>(demotions));
}

TEST_CASE("tasks that each fork many tiny ones are shared among the workers") {
  const int outer = 60;
  const int inner = static_cast<int>(5'000 / weft_test::scale());
  std::uint64_t steals = 0;
  for (int round = 0; round < 5 || (steals == 0 && round < 250); ++round) {
    crowd rt(2);
    std::vector<long> counts(outer);
    rt.run([&] {
      for (long& c : counts)
        weft::fork(
            [inner](long& n) {
              for (int i = 0; i < inner; ++i) weft::fork([](long& m) { ++m; }, weft::update(weft::borrow(n)));
              weft::sync();
            },
            weft::update(weft::borrow(c)));
    });
    CHECK(counts == std::vector<long>(outer, inner));
    steals += rt.counters().steals;
  }
  std::printf("nested: steals %llu\n", static_cast<unsigned long long>(steals));
  CHECK(steals > 0);
}
