// SPDX-License-Identifier: BSL-1.0
// Many threads call run at once, tasks call run, and runtimes call each other.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using weft_test::fib;

TEST_CASE("many threads run on two runtimes at once") {
  weft::runtime one({.workers = 2}), two({.workers = 3, .inlining = false});
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 200 / static_cast<int>(weft_test::scale()) + 1; ++i) {
        weft::runtime& rt = (c + i) % 2 == 0 ? one : two;
        if (i % 3 == 0) {
          weft::shared<long> r;
          rt.run(weft_test::flow_fib, 11L, r);
          wrong += r.get() != 89;
        } else {
          wrong += rt.run(fib, 12L) != 144;
        }
      }
    });
  for (std::thread& t : callers) t.join();
  CHECK(wrong == 0);
}

namespace {
long nested(weft::runtime& rt, int depth) {
  if (depth == 0) return 1;
  auto a = weft::fork([&rt, depth] { return rt.run(nested, std::ref(rt), depth - 1); });
  const long b = rt.run([&rt, depth] { return nested(rt, depth / 2 - 1 > 0 ? depth / 2 - 1 : 0); });
  weft::sync();
  return a.get() + b;
}
long nested_serially(int depth) {
  return depth == 0 ? 1 : nested_serially(depth - 1) + nested_serially(depth / 2 - 1 > 0 ? depth / 2 - 1 : 0);
}
}  // namespace

TEST_CASE("run inside tasks of the same runtime") {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      weft::runtime rt({.workers = workers, .inlining = inlining});
      for (int i = 0; i < 5; ++i) CHECK(rt.run(nested, std::ref(rt), 12) == nested_serially(12));
      int caught = 0;
      rt.run([&] {
        try {
          rt.run([] { weft::fork([] { throw 5; }); });
        } catch (int e) {
          caught = e;
        }
      });
      CHECK(caught == 5);
    }
}

namespace {
/// Each level runs on the other runtime, and waits there.
long ping(weft::runtime& here, weft::runtime& there, int depth) {
  if (depth == 0) return 1;
  auto a = weft::fork(
      [&here, &there, depth] { return there.run(ping, std::ref(there), std::ref(here), depth - 1); });
  weft::sync();
  return a.get() + 1;
}
}  // namespace

TEST_CASE("two runtimes call each other") {
  for (const unsigned workers : {1u, 2u}) {
    INFO("workers " << workers);
    weft::runtime one({.workers = workers}), two({.workers = workers});
    CHECK(one.run(ping, std::ref(one), std::ref(two), 30) == 31);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c)
      callers.emplace_back([&, c] {
        weft::runtime& here = c % 2 == 0 ? one : two;
        weft::runtime& there = c % 2 == 0 ? two : one;
        for (int i = 0; i < 20; ++i) wrong += here.run(ping, std::ref(here), std::ref(there), 8) != 9;
      });
    for (std::thread& t : callers) t.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("a runtime is destroyed at once after another runtime's worker has continued its task") {
  weft::runtime two({.workers = 2});
  int right = 0;
  constexpr int rounds = 400;
  for (int i = 0; i < rounds; ++i) {
    weft::runtime one({.workers = 1});
    right += one.run([&] { return two.run(fib, 5L); }) == 5;
  }
  CHECK(right == rounds);
}

TEST_CASE("runtimes are made and destroyed inside tasks") {
  weft::runtime rt({.workers = 2});
  std::atomic<int> right{0};
  rt.run([&] {
    for (int i = 0; i < 20; ++i)
      weft::fork([&] {
        weft::runtime inner({.workers = 2});
        right += inner.run(fib, 10L) == 55;
      });
  });
  CHECK(right == 20);
}
