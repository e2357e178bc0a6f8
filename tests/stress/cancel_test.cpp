// SPDX-License-Identifier: BSL-1.0
// Runs are stopped at any moment, from outside and from inside; nothing is left and the runtime works.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/tracked.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

using weft_test::tracked;
using weft_test::works;

namespace {

std::atomic<long> started{0};

/// A tree that would run for ages.
void tree(int depth, tracked t) {
  started.fetch_add(1, std::memory_order_relaxed);  // a statistic, read after run returned
  if (depth == 0 || weft::this_task::stop_token().stop_requested()) return;
  weft::shared<tracked> local(tracked(1));
  for (int i = 0; i < 3; ++i) weft::fork(tree, depth - 1, t);
  weft::fork([](tracked& v) { v.value = 2; }, weft::update(local));
  if (depth % 2 == 0) weft::sync();
}

}  // namespace

TEST_CASE("a stopped run drops what has not started and throws cancelled") {
  weft_test::random dice(3);
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      weft::runtime rt({.workers = workers, .inlining = inlining});
      for (int i = 0; i < 20; ++i) {
        tracked::reset();
        std::stop_source source;
        std::thread outside([&, pause = dice.below(3000)] {
          std::this_thread::sleep_for(std::chrono::microseconds(pause));
          source.request_stop();
        });
        CHECK_THROWS_AS(rt.run({.stop = source.get_token()}, tree, 40, tracked(1)), weft::cancelled);
        outside.join();
        CHECK(tracked::alive == 0);
      }
      CHECK(works(rt));
    }
}

TEST_CASE("a run whose token is stopped before it starts runs nothing") {
  weft::runtime rt({.workers = 2});
  std::stop_source source;
  source.request_stop();
  bool ran = false;
  CHECK_THROWS_AS(rt.run({.stop = source.get_token()}, [&] { ran = true; }), weft::cancelled);
  CHECK(!ran);
  CHECK(works(rt));
}

TEST_CASE("a run whose token is never stopped ends as usual") {
  weft::runtime rt({.workers = 2});
  const std::stop_source source;
  CHECK(rt.run({.stop = source.get_token()}, weft_test::fib, 12L) == 144);
  CHECK(rt.run({}, weft_test::fib, 12L) == 144);
}

TEST_CASE("a task stops its own run, and only that") {
  weft::runtime rt({.workers = 3});
  std::atomic<int> wrong{0};
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) wrong += rt.run(weft_test::fib, 11L) != 89;
  });
  for (int i = 0; i < 50; ++i) {
    tracked::reset();
    CHECK_THROWS_AS(rt.run([] {
      weft::fork(tree, 40, tracked(1));
      weft::fork([] { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK(tracked::alive == 0);
  }
  other.join();
  CHECK(wrong == 0);
  CHECK(works(rt));
}

TEST_CASE("a waiting body of a stopped run is unwound") {
  weft::runtime rt({.workers = 2, .inlining = false});
  for (int i = 0; i < 50; ++i) {
    tracked::reset();
    std::stop_source source;
    bool after = false;
    std::atomic<bool> late{false};
    CHECK_THROWS_AS(rt.run({.stop = source.get_token()},
                           [&] {
                             const tracked on_stack(1);
                             std::atomic<bool> running{false};
                             const auto before = rt.counters().suspensions;
                             weft::fork([&] {
                               running = true;
                               if (!weft_test::wait_until([&] { return rt.counters().suspensions > before; }))
                                 late = true;
                               source.request_stop();
                               weft::fork([] {});
                             });
                             if (!weft_test::wait_until([&] { return running.load(); })) late = true;
                             weft::sync();
                             after = true;
                           }),
                    weft::cancelled);
    CHECK(!late);
    CHECK(!after);
    CHECK(tracked::alive == 0);
  }
}
