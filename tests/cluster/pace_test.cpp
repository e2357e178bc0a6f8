// SPDX-License-Identifier: BSL-1.0
// When a process of a cluster asks for tasks, whom, and for how many.
#include "support/catch.hpp"

#include <weft/cluster/detail/pace.hpp>
#include <weft/cluster/detail/victims.hpp>

#include <set>
#include <vector>

using namespace std::chrono_literals;
using weft::remote::pace;

namespace {

/// One that has seen guests of this length, and answers that take 100 us.
pace used_to(pace::duration length) {
  pace p;
  p.begin();
  for (int i = 0; i < 100; ++i) {
    const pace::time_point now{};
    p.asked(now, true);
    p.answered(now + 100us, true);
    p.ended(1, length, {});
  }
  return p;
}

}  // namespace

TEST_CASE("a process asks for one task at first, then for more of short ones") {
  pace p = used_to(20us);
  CHECK(p.number() == 1);
  CHECK(p.number() == 4);
  CHECK(p.number() == 16);
  const unsigned most = p.number();  // the work of eight answers, 0.8 ms
  CHECK(most >= 38);
  CHECK(most <= 41);
  CHECK(p.number() == most);
  p.begin();
  CHECK(p.number() == 1);
  CHECK(p.number() == 1);  // nothing is known of the tasks of this run
}

TEST_CASE("of long tasks a process asks for one, and not ahead") {
  pace p = used_to(2ms);
  CHECK(p.number() == 1);
  CHECK(p.number() == 1);
  CHECK_FALSE(p.asks_ahead(0, {}));
}

TEST_CASE("a process does not ask ahead for tasks that are done sooner where they are") {
  CHECK_FALSE(used_to(3us).asks_ahead(0, {}));
  CHECK(used_to(10us).asks_ahead(0, {}));
}

TEST_CASE("a process asks ahead when half of the work is done, once for each guest that ends") {
  pace p = used_to(20us);
  CHECK_FALSE(p.asks_ahead(21, {}));
  CHECK(p.asks_ahead(18, {}));
  p.asked({}, false);
  p.answered(pace::time_point{} + 100us, true);
  CHECK(p.asks_ahead(0, {}));
  p.asked({}, true);
  p.answered(pace::time_point{} + 100us, true);
  CHECK_FALSE(p.asks_ahead(0, {}));
  p.ended(1, 20us, {});
  CHECK(p.asks_ahead(0, {}));
}

TEST_CASE(
    "of long tasks the next one is asked for so that it comes when one ends, if it takes long to come") {
  pace p;
  p.begin();
  const pace::time_point now{};
  p.asked(now, false);
  p.answered(now + 1ms, true);
  CHECK_FALSE(p.asks_ahead(0, now + 1ms));  // how long a guest takes is not known
  p.ended(1, 10ms, now + 11ms);
  p.asked(now + 11ms, false);
  p.answered(now + 12ms, true);  // from then on it runs
  CHECK_FALSE(p.asks_ahead(0, now + 20ms));
  CHECK(p.asks_ahead(0, now + 21ms));
  CHECK_FALSE(p.asks_ahead(1, now + 21ms));
  p.asked(now + 21ms, true);
  p.answered(now + 22ms, true);
  CHECK_FALSE(p.asks_ahead(0, now + 22ms));
  p.ended(1, 10ms, now + 22ms);  // which has begun then
  CHECK_FALSE(p.asks_ahead(0, now + 30ms));
  CHECK(p.asks_ahead(0, now + 31ms));
  for (int i = 0; i < 100; ++i) p.answered(now + 21ms + 10us, false);
  CHECK(p.asks_ahead(0, now + 31ms));  // answers without tasks say nothing of the way of values
  for (int i = 0; i < 100; ++i) p.answered(now + 21ms + 10us, true);
  CHECK_FALSE(p.asks_ahead(0, now + 31ms));  // it gains nothing
}

TEST_CASE("one guest that was interrupted changes little") {
  pace p = used_to(20us);
  p.ended(1, 20ms, {});
  CHECK(p.asks_ahead(0, {}));
  for (int i = 0; i < 3; ++i) p.number();
  CHECK(p.number() >= 30);
}

TEST_CASE("what has come ahead is given back after two milliseconds, or two answers") {
  CHECK(used_to(20us).longest_wait() == 2ms);
  pace p = used_to(20us);
  for (int i = 0; i < 100; ++i) {
    p.asked({}, true);
    p.answered(pace::time_point{} + 10ms, true);
  }
  CHECK(p.longest_wait() > 15ms);
}

TEST_CASE("a process asks some of its own machine before any other, and after a task begins there again") {
  const std::vector<int> machines{0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1};
  weft::remote::victims v(2, machines);
  std::set<int> far;
  for (int run = 0; run < 200; ++run) {
    v.begin();
    for (int i = 0; i < 3; ++i) {
      const int asked = v.next();
      CHECK(asked != 2);
      CHECK(machines[static_cast<std::size_t>(asked)] == 0);
      v.has_nothing(1ms);
    }
    for (int i = 0; i < 20; ++i) {
      const int asked = v.next();
      REQUIRE((asked >= 0 && asked < 12 && asked != 2));
      if (machines[static_cast<std::size_t>(asked)] == 1) far.insert(asked);
      v.has_nothing(1ms);
    }
  }
  CHECK(far.size() == 8);
}

TEST_CASE("where all processes share a machine, or none do, any other is asked at once") {
  for (const std::vector<int>& machines : {std::vector<int>(6, 0), std::vector<int>{0, 1, 2, 3, 4, 5}}) {
    weft::remote::victims v(0, machines);
    std::set<int> asked;
    for (int run = 0; run < 200; ++run) {
      v.begin();
      asked.insert(v.next());
    }
    CHECK(asked == std::set<int>{1, 2, 3, 4, 5});
  }
}
