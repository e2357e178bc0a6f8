// SPDX-License-Identifier: BSL-1.0
// Spawned bodies: they have a flow of their own, runs wait for them, and their exceptions have a place.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <weft/threads.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

using weft_test::contains;
using weft_test::on_each_runtime;

namespace {

std::string failure_of(const auto& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a spawned body may wait for what comes later, whatever the number of workers") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> stage(0);
    std::vector<int> order;
    rt.run([&] {
      weft::spawn([&] {
        stage.wait_equal(1);
        order.push_back(1);
        stage.set(2);
      });
      order.push_back(0);  // never inside spawn
      stage.set(1);
      stage.wait_equal(2);
      order.push_back(2);
    });
    CHECK(order == std::vector<int>{0, 1, 2});
  });
}

TEST_CASE("sync and run wait for spawned bodies and for what these fork and spawn") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> ended{0};
    int at_sync = 0;
    rt.run([&] {
      for (int i = 0; i < 5; ++i)
        weft::spawn([&] {
          weft::spawn([&] {
            weft::this_task::sleep_for(std::chrono::microseconds(200));
            ++ended;
          });
          for (int k = 0; k < 3; ++k) weft::fork([&] { ++ended; });
          ++ended;
        });
      weft::sync();
      at_sync = ended;
      weft::spawn([&] { ++ended; });
    });
    CHECK(at_sync == 25);
    CHECK(ended == 26);
  });
}

TEST_CASE("tasks that follow a spawned body do not wait for it, tasks that follow its parent do") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> go(0);
    weft::shared<int> value(0);
    bool was_there = false;
    rt.run([&] {
      weft::fork(
          [&](weft::write<int> v) {
            weft::spawn([&] { go.wait_equal(1); });
            v = 7;
          },
          value);
      weft::fork([&] { go.set(1); });
      weft::fork([&](weft::read<int> v) { was_there = go.get() == 1 && *v == 7; }, value);
    });
    CHECK(was_there);
  });
}

TEST_CASE("bodies that take turns do not keep a fork from its turn") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> turn(0);
    std::atomic<bool> stop{false};
    rt.run([&] {
      for (const int mine : {0, 1})
        weft::spawn([&, mine] {
          do {  // once at least: the other one may wait for this one's turn already
            turn.wait_equal(mine);
            turn.set(1 - mine);
          } while (!stop);
        });
      weft::fork([&] { stop = true; });
    });
    CHECK(stop);
  });
}

TEST_CASE(
    "an exception of a spawned body counts as that of a task in its place, and ends the waits of others") {
  on_each_runtime([](weft::runtime& rt) {
    weft::semaphore never(0);
    std::atomic<int> begun{0}, cancelled{0};
    const auto wait = [&] {
      ++begun;
      try {
        never.acquire();
      } catch (const weft::cancelled&) {
        ++cancelled;
        throw;
      }
    };
    CHECK(failure_of([&] {
            rt.run([&] {
              weft::spawn([&] {
                while (begun < 2) weft::this_task::sleep_for(std::chrono::microseconds(100));
                throw std::runtime_error("first");
              });
              weft::spawn(wait);
              weft::spawn(wait);
            });
          }) == "first");
    CHECK(cancelled == 2);
    weft::condition<int> order(0);
    CHECK(failure_of([&] {
            rt.run([&] {
              weft::spawn([&] {
                order.wait_equal(1);
                throw std::runtime_error("earlier in order");
              });
              weft::spawn([&] {
                struct at_end {
                  weft::condition<int>& c;
                  ~at_end() { c.set(1); }
                } set{order};
                throw std::runtime_error("earlier in time");
              });
            });
          }) != "nothing");
    // A run after that is as any other.
    bool ran = false;
    rt.run([&] { weft::spawn([&] { ran = true; }); });
    CHECK(ran);
  });
}

TEST_CASE("what is spawned behind an exception, or in a stopped run, is dropped with what it holds") {
  on_each_runtime([](weft::runtime& rt) {
    const auto held = std::make_shared<int>(1);
    CHECK(failure_of([&] {
            rt.run([&] {
              weft::spawn([held] { throw std::runtime_error("x"); });
              weft::sync();
              weft::spawn([held] {});
            });
          }) == "x");
    CHECK_THROWS_AS(rt.run([&] {
      weft::this_task::request_stop();
      weft::spawn([held] {});
    }),
                    weft::cancelled);
    CHECK(held.use_count() == 1);
  });
}

TEST_CASE("spawned bodies are named in reports, and move what cannot be copied") {
  weft::runtime rt({.workers = 2});
  weft::semaphore go(0);
  std::string report;
  int value = 0;
  rt.run([&] {
    weft::spawn({.name = "patient"}, [&, p = std::make_unique<int>(3)] {
      go.acquire();
      value = *p;
    });
    weft_test::wait_until([&] {
      weft::this_task::sleep_for(std::chrono::microseconds(100));
      report = rt.describe();
      return report.find("patient") != std::string::npos && report.find("a semaphore") != std::string::npos;
    });
    go.release();
  });
  CHECK_THAT(report, contains("patient"));
  CHECK_THAT(report, contains("a semaphore"));
  CHECK(value == 3);
}

namespace {

/// Uses so much stack.
[[gnu::noinline]] long use_stack(std::size_t bytes) {
  char block[4096];
  std::memset(block, 1, sizeof block);
  asm volatile("" : : "r"(block) : "memory");
  return bytes > sizeof block ? use_stack(bytes - sizeof block) + block[17] : block[0];
}

}  // namespace

TEST_CASE("a spawned body has a stack of the size it asks for, on whichever worker it goes on") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> ended{0}, forked{0};
    std::atomic<bool> same{true};
    weft::semaphore go(0);
    rt.run([&] {
      for (const std::size_t size : {std::size_t{4} << 20, std::size_t{64} << 10, std::size_t{3} << 20})
        for (int i = 0; i < 3; ++i)
          weft::spawn({.stack_size = size}, [&, size] {
            const char here = 0;
            go.acquire();
            const char* const there = &here;
            use_stack(size / 2);
            for (int k = 0; k < 4; ++k) weft::fork([&] { ++forked; });
            weft::sync();
            use_stack(size / 2);
            same = same && there == &here;
            for (int k = 0; k < 4; ++k) weft::fork([&] { ++forked; });
            ++ended;
          });
      weft::this_task::sleep_for(std::chrono::microseconds(100));
      go.release(9);
    });
    CHECK(ended == 9);
    CHECK(forked == 72);
    CHECK(same);
  });
}

TEST_CASE("an impossible stack size is refused, and nothing is left of the body") {
  weft::runtime rt({.workers = 2});
  const auto held = std::make_shared<int>(1);
  CHECK_THAT(failure_of([&] { rt.run([&] { weft::spawn({.stack_size = 1000}, [held] {}); }); }),
             contains("weft: a context stack of 1000 bytes is too small"));
  CHECK_THROWS_AS(rt.run([&] { weft::spawn({.stack_size = std::size_t{1} << 60}, [held] {}); }),
                  std::system_error);
  CHECK(held.use_count() == 1);
  int ran = 0;
  rt.run([&] {
    weft::spawn([&] { ++ran; });
    weft::spawn({.stack_size = 32 * 1024}, [&] { throw std::runtime_error("small"); });
    weft::spawn([&, held] { weft::this_task::sleep_for(std::chrono::hours(1)); });
    try {
      weft::sync();
    } catch (const std::runtime_error&) {
      ++ran;
    }
  });
  CHECK(ran == 2);
  CHECK(held.use_count() == 1);
}

TEST_CASE(
    "of spawned bodies that are ready the more urgent begins, and what it forks and spawns inherits that") {
  weft::runtime rt({.workers = 1});
  std::string order;
  rt.run([&] {
    weft::spawn([&] { order += 'd'; });
    weft::spawn({.priority = -1}, [&] { order += 'f'; });
    weft::spawn({.priority = 2}, [&] {
      order += 'a';
      weft::spawn([&] { order += 'c'; });
      order += 'b';
    });
    weft::spawn([&] { order += 'e'; });
  });
  CHECK(order == "abcdef");
}

TEST_CASE("a more urgent body does not wait for two that take turns") {
  weft::runtime rt({.workers = 1});
  constexpr int turns = 200;
  weft::condition<int> turn(0);
  int began_at = 0;
  rt.run([&] {
    for (int me = 0; me < 2; ++me)
      weft::spawn([&, me] {
        for (int i = me; i < turns; i += 2) {
          turn.wait_equal(i);
          if (i == 20) weft::spawn({.priority = 1}, [&] { began_at = turn.get(); });
          turn.set(i + 1);
        }
      });
  });
  CHECK(began_at > 20);
  CHECK(began_at <= 22);
}

TEST_CASE("very many bodies wait at the same time") {
  weft::runtime rt({.workers = 2, .stack_size = 32 * 1024});
  constexpr int n = 20'000;  // more than there are stacks with guards
  weft::barrier all(n);
  std::atomic<int> passed{0};
  rt.run([&] {
    for (int i = 0; i < n; ++i)
      weft::spawn([&] {
        all.arrive_and_wait();
        ++passed;
      });
  });
  CHECK(passed == n);
}

TEST_CASE("spawn outside a task is refused") {
  const auto child = weft_test::run_in_child([] { weft::spawn([] {}); });
  CHECK(child.aborted());
  CHECK_THAT(child.output, contains("weft: spawn() was called outside a task"));
}
