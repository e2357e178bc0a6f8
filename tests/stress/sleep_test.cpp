// SPDX-License-Identifier: BSL-1.0
// Workers fall asleep and are woken very often, by callers from outside and by one another.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

int cycles() {
  return (weft_test::long_run() ? 100'000'000 : 2'000'000) / static_cast<int>(weft_test::scale());
}

}  // namespace

TEST_CASE("workers that sleep at once are woken by every caller") {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const int callers : {1, 2}) {
      INFO("workers " << workers << ", callers " << callers);
      weft::runtime rt({.workers = workers, .spin = std::chrono::microseconds(0)});
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      const int each = cycles() / 6 / callers;
      for (int c = 0; c < callers; ++c)
        threads.emplace_back([&] {
          for (int i = 0; i < each; ++i) wrong += rt.run([i] { return i; }) != i;
        });
      for (std::thread& t : threads) t.join();
      CHECK(wrong == 0);
      const weft::counters c = rt.counters();
      std::printf("%u workers, %d callers: %llu sleeps, %llu wakes\n", workers, callers,
                  static_cast<unsigned long long>(c.sleeps), static_cast<unsigned long long>(c.wakes));
      weft_test::figure("sleeps", c.sleeps);
      CHECK(c.sleeps > 0);
      if (workers > 1) CHECK(c.wakes > 0);
    }
}

TEST_CASE("a task is taken by a worker that slept, while its parent is busy") {
  for (const unsigned workers : {2u, 4u})
    for (const bool inlining : {true, false})
      for (const unsigned surplus : {0u, 4u})
        for (const int before : {0, 1, 40}) {  // short tasks before it, which may wake sleepers for nothing
          INFO("workers " << workers << ", inlining " << inlining << ", surplus " << surplus << ", before "
                          << before);
          weft::runtime rt({.workers = workers, .inlining = inlining, .surplus = surplus});
          int taken = 0;
          constexpr int rounds = 10;
          for (int i = 0; i < rounds; ++i)
            rt.run([&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until all others sleep
              for (int k = 0; k < before; ++k) {
                weft::fork([] {});
                if (k % 4 == 3) weft::sync();
              }
              std::atomic<bool> started{false};
              weft::fork([&] { started = true; });
              taken += weft_test::wait_until([&] { return started.load(); });
              weft::sync();
            });
          CHECK(taken == rounds);
        }
}

TEST_CASE("workers that sleep at once are woken by forked tasks") {
  weft::runtime rt({.workers = 3, .inlining = false, .spin = std::chrono::microseconds(0)});
  int wrong = 0;
  for (int i = 0; i < cycles() / 20; ++i) {
    std::atomic<int> ran{0};
    rt.run([&] {
      for (int k = 0; k < 4; ++k)
        weft::fork([&, k] {
          if (k % 2 == 0) std::this_thread::yield();
          ran.fetch_add(1, std::memory_order_relaxed);  // run orders it before the read
        });
      if (i % 2 == 0) weft::sync();
    });
    wrong += ran != 4;
  }
  CHECK(wrong == 0);
  CHECK(rt.counters().steals > 0);
  CHECK(rt.counters().sleeps > 0);
}

TEST_CASE("a runtime that slept long wakes up") {
  weft::runtime rt({.workers = 4});
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<bool> stolen{false};
    rt.run([&] {
      weft::fork([&] { stolen = true; });
      weft::sync();
    });
    CHECK(stolen);
  }
  CHECK(rt.counters().sleeps > 0);
}
