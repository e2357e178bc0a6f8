// SPDX-License-Identifier: BSL-1.0
// Options of a task, and what a task may ask about itself.
#include "flow/runtimes.hpp"
#include "support/record.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using weft_test::kernel_thread;
using weft_test::on_each_runtime;
using weft_test::wait_until;

namespace {

std::string name() {
  const char* const n = weft::this_task::name();
  return n != nullptr ? n : "none";
}

}  // namespace

TEST_CASE("outside tasks there is no name") { CHECK(weft::this_task::name() == nullptr); }

TEST_CASE("a task has the name that its options give it, wherever it runs") {
  on_each_runtime([](weft::runtime& rt) {
    weft_test::record<std::string> wrong;
    const auto expect = [&](const char* expected) {
      if (name() != expected) wrong.add(name() + " instead of " + expected);
    };
    rt.run([&] {
      for (int i = 0; i < 10; ++i) {
        weft::fork({.name = "potrf"}, [&] {
          expect("potrf");
          weft::fork({.name = "inner"}, expect, "inner");
          expect("potrf");
          weft::sync();
          expect("potrf");
        });
        weft::fork({.name = "trsm", .priority = 3}, expect, "trsm");
      }
      expect("task");
      weft::sync();
      expect("task");
    });
    CHECK(wrong.entries() == std::vector<std::string>{});
  });
}

TEST_CASE("a task without a name does not have that of a sibling") {
  on_each_runtime([](weft::runtime& rt) {
    weft_test::record<std::string> names;
    rt.run([&] {
      weft::fork({.name = "before"}, [] {});
      weft::fork([&] { names.add(name()); });
      weft::fork({.name = "after"}, [] { weft::fork([] {}); });
      weft::sync();
      names.add(name());
      try {
        weft::fork({.name = "throwing"}, [] { throw 1; });
        weft::sync();
      } catch (int) {
      }
      names.add(name());
    });
    CHECK(names.entries() == std::vector<std::string>{"task", "task", "task"});
  });
}

TEST_CASE("a task that was stolen or has waited knows its name") {
  weft::runtime rt(weft_test::two_and_deferring());
  int right = 0;
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i)
    rt.run([&] {
      std::atomic<bool> started{false};
      std::string stolen, waited;
      const auto before = rt.counters().suspensions;
      weft::fork({.name = "stolen"}, [&] {
        stolen = name();
        started = true;
        wait_until([&] { return rt.counters().suspensions > before; });
      });
      wait_until([&] { return started.load(); });
      weft::sync();
      waited = name();
      right += stolen == "stolen" && waited == "task";
    });
  CHECK(right == rounds);
  CHECK(rt.counters().suspensions >= rounds);
}

TEST_CASE("options go with results, arguments and rights") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> x(1);
    int got = 0;
    rt.run([&] {
      auto r = weft::fork({.name = "result"}, [](int a, const int& b) { return a + b; }, 2, weft::read(x));
      weft::fork({.name = "update", .priority = -5}, [](weft::update<int> v) { *v += 10; }, x);
      weft::fork({}, [](int& v) { v *= 2; }, weft::update(x));
      const weft::task_options stored{.name = "stored"};
      weft::fork(stored, [](int& v) { v += 1; }, weft::update(x));
      weft::sync();
      got = r.get();
    });
    CHECK(got == 3);
    CHECK(x.get() == 23);
  });
}

TEST_CASE("priorities never change the result") {
  on_each_runtime([](weft::runtime& rt) {
    std::string text;
    rt.run([&] {
      auto t = weft::borrow(text);
      for (int i = 0; i < 26; ++i)
        weft::fork(
            {.priority = i * 7 % 26}, [i](std::string& s) { s += static_cast<char>('a' + i); },
            weft::update(t));
    });
    CHECK(text == "abcdefghijklmnopqrstuvwxyz");
  });
}

TEST_CASE("a local task runs on its parent's worker, while others are stolen") {
  weft::runtime rt({.workers = 3, .inlining = false});
  int elsewhere = 0, stolen = 0;
  constexpr int rounds = 30;
  for (int i = 0; i < rounds; ++i) {
    weft_test::record<long> local;
    std::atomic<int> begun{0};
    long parent = 0;
    rt.run([&] {
      parent = kernel_thread();
      for (int k = 0; k < 4; ++k) {
        weft::fork({.local = true}, [&] { local.add(kernel_thread()); });
        if (k < 2) weft::fork([&] { ++begun; });
      }
      // The thieves go past the local tasks: only they can begin the others now.
      stolen += wait_until([&] { return begun == 2; });
      // Time for them to take the local ones, if they would.
      wait_until([&, before = rt.counters().steal_attempts] { return rt.counters().steal_attempts > before; },
                 std::chrono::milliseconds(5));
    });
    for (const long thread : local.entries()) elsewhere += thread != parent;
    CHECK(local.entries().size() == 4);
  }
  CHECK(stolen == rounds);
  CHECK(elsewhere == 0);
  CHECK(rt.counters().steals >= 2 * rounds);
}

TEST_CASE("a local task stays in its parent's strand when that is continued elsewhere") {
  weft::runtime rt(weft_test::two_and_deferring());
  int in_strand = 0, waited = 0;
  constexpr int rounds = 30;
  for (int i = 0; i < rounds; ++i) {
    long thief = 0, local = 0;
    rt.run([&] {
      weft_test::fork_to_thief([&] {
        thief = kernel_thread();
        waited += weft_test::wait_for_waiter(rt);
      });
      weft::fork({.local = true}, [&] { local = kernel_thread(); });
    });
    in_strand += local == thief;  // whoever ended the child continues the strand that waited for it
  }
  CHECK(waited == rounds);
  CHECK(in_strand == rounds);
  CHECK(rt.counters().steals == rounds);
}

TEST_CASE("a local task may wait, fork and throw like any other") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> sum(0L);
    int caught = 0;
    rt.run([&] {
      for (long i = 0; i < 10; ++i)
        weft::fork(
            {.local = true},
            [i](weft::update<long> s) {
              weft::fork([i](long& v) { v += i; }, s);
              weft::sync();
              *s *= 2;
            },
            sum);
      weft::sync();
      weft::fork({.local = true}, [] { throw 3; });
      try {
        weft::sync();
      } catch (int n) {
        caught = n;
      }
    });
    long expected = 0;
    for (long i = 0; i < 10; ++i) expected = (expected + i) * 2;
    CHECK(sum.get() == expected);
    CHECK(caught == 3);
  });
}

TEST_CASE("tasks of one run share its stop token, other runs have another") {
  weft::runtime rt({.workers = 2});
  std::stop_token first, child, nested, second;
  rt.run([&] {
    first = weft::this_task::stop_token();
    weft::fork([&] { child = weft::this_task::stop_token(); });
    weft::sync();
    rt.run([&] { nested = weft::this_task::stop_token(); });
  });
  rt.run([&] { second = weft::this_task::stop_token(); });
  CHECK(first == child);
  CHECK_FALSE(first == nested);
  CHECK_FALSE(first == second);
  CHECK_FALSE(first.stop_requested());  // and may be asked after the run
}

TEST_CASE("request_stop stops the run: what has not started is dropped") {
  for (const auto& options : {weft_test::alone_and_inlining(), weft_test::alone_and_deferring()}) {
    weft::runtime rt(options);
    std::vector<int> ran;
    bool seen = false;
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork([&] { ran.push_back(1); });
      weft::fork([&] {
        ran.push_back(2);
        weft::this_task::request_stop();
        seen = weft::this_task::stop_token().stop_requested();
        weft::fork([&] { ran.push_back(21); });
      });
      weft::fork([&] { ran.push_back(3); });
    }),
                    weft::cancelled);
    CHECK(ran == std::vector<int>{1, 2});
    CHECK(seen);
    CHECK(rt.counters().dropped == 2);
    CHECK(weft_test::works(rt));
  }
}

TEST_CASE("a long body that polls its token ends soon after a stop") {
  weft::runtime rt(weft_test::two_and_deferring());
  std::atomic<bool> polling{false}, ended_by_token{false};
  CHECK_THROWS_AS(rt.run([&] {
    weft::fork([&] {
      polling = true;
      const std::stop_token token = weft::this_task::stop_token();
      ended_by_token = wait_until([&] { return token.stop_requested(); });
    });
    wait_until([&] { return polling.load(); });
    weft::this_task::request_stop();
  }),
                  weft::cancelled);
  CHECK(ended_by_token);
}

TEST_CASE("thieves execute what a body goes on forking when they have executed all before") {
  // So many that the frame becomes a graph; the thief never goes to sleep, before which it would look
  // everywhere.
  constexpr int first = 2 * WEFT_LARGE_FRAME, more = 9;
  weft::runtime rt({.workers = 2, .inlining = false, .spin = std::chrono::seconds(10)});
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> executed{0};
    bool in_time = false;
    rt.run([&] {
      const auto fork_until = [&](int n) {
        for (int i = executed; i < n; ++i)
          weft::fork([&] {
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
            while (std::chrono::steady_clock::now() < end) {
            }
            ++executed;
          });
        return wait_until([&] { return executed == n; }, std::chrono::seconds(5));
      };
      in_time = fork_until(first) && fork_until(first + more);
    });
    REQUIRE(in_time);
  }
}
