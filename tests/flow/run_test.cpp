// SPDX-License-Identifier: BSL-1.0
// run: from any thread, several at a time, inside tasks, with every kind of result, and stopped at any
// moment.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using weft_test::fib;
using weft_test::on_each_runtime;
using weft_test::tracked;
using weft_test::wait_until;

TEST_CASE("run returns what its function returns") {
  on_each_runtime([](weft::runtime& rt) {
    static_assert(std::is_void_v<decltype(rt.run([] {}))>);
    static_assert(std::is_same_v<decltype(rt.run([]() -> const std::string& { throw 1; })), std::string>);
    CHECK(rt.run([] { return 42; }) == 42);
    CHECK(rt.run([](std::string a, const char* b) { return a + b; }, "x", "y") == "xy");
    CHECK(*rt.run([] { return std::make_unique<int>(7); }) == 7);
    CHECK(rt.run(fib, 14L) == 377);
    struct no_default {
      explicit no_default(int v) : value(v) {}
      int value;
    };
    CHECK(rt.run([] { return no_default(3); }).value == 3);
    struct alignas(64) wide {
      long value;
    };
    CHECK(rt.run([] { return wide{5}; }).value == 5);
    const std::string text = "text";
    CHECK(rt.run([&]() -> const std::string& { return text; }) == "text");
  });
}

TEST_CASE("the result is made once, and everything else of the run is gone") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    {
      const tracked r = rt.run(
          [](tracked t) {
            weft::fork([c = tracked(3)] { static_cast<void>(c); });
            return tracked(t.value + 1);
          },
          tracked(4));
      CHECK(r.value == 5);
      CHECK(tracked::copies == 0);
      CHECK(tracked::alive == 1);
    }
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("run returns when everything below it has ended") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> ended{0};
    const int seen = rt.run([&] {
      for (int i = 0; i < 10; ++i)
        weft::fork([&] {
          weft::fork([&] {
            std::this_thread::yield();
            ++ended;
          });
        });
      return 1;
    });
    CHECK(seen == 1);
    CHECK(ended == 10);
  });
}

TEST_CASE("run takes values, references, borrowed and shared objects") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> r, u(1L);
    long mine = 5;
    std::string text = "a";
    rt.run(
        [](weft::write<long> w, weft::update<long> v, long n) {
          w = n;
          *v += n;
        },
        r, u, 10L);
    rt.run([](weft::update<long> v) { *v *= 2; }, weft::borrow(mine));
    rt.run([](const long& a, long& b) { b += a; }, weft::read(u), weft::update(r));
    rt.run([](std::string& s) { s += "b"; }, std::ref(text));
    CHECK(r.get() == 21);
    CHECK(mine == 10);
    CHECK(text == "ab");
  });
}

TEST_CASE("several threads run at once on one runtime") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 5; ++c)
      callers.emplace_back([&, c] {
        for (int i = 0; i < 20; ++i) {
          wrong += rt.run([=] { return c * i; }) != c * i;
          wrong += rt.run(fib, 8L) != 21;
        }
      });
    for (std::thread& t : callers) t.join();
    CHECK(wrong == 0);
  });
}

TEST_CASE("run inside a task, of the same runtime and of another") {
  on_each_runtime([](weft::runtime& rt) {
    weft::runtime other({.workers = 1});
    std::vector<long> seen;
    rt.run([&] {
      seen.push_back(rt.run(fib, 10L));
      seen.push_back(other.run(fib, 11L));
      seen.push_back(other.run([&] { return rt.run(fib, 12L) + 1; }));
      weft::shared<long> x(1L);
      weft::fork([](long& v) { v += 1; }, weft::update(x));
      rt.run([] { weft::fork([] {}); });  // does not wait for this task's children, nor take them along
      weft::sync();
      seen.push_back(x.get());
    });
    CHECK(seen == std::vector<long>{55, 89, 145, 2});
  });
}

TEST_CASE("a task that waits for a run of its own leaves its worker to others") {
  weft::runtime rt({.workers = 1});
  int depth = 0;
  const std::function<void(int)> down = [&](int n) {
    ++depth;
    if (n > 0) rt.run([&, n] { down(n - 1); });
  };
  rt.run([&] { down(50); });
  CHECK(depth == 51);
  CHECK(rt.counters().suspensions >= 50);
}

TEST_CASE("tasks run side by side on one runtime while each waits for runs of its own") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<long> sum{0};
    rt.run([&] {
      for (long i = 0; i < 20; ++i) weft::fork([&, i] { sum += rt.run([i] { return fib(i % 8); }); });
    });
    long expected = 0;
    for (long i = 0; i < 20; ++i)
      expected += std::vector<long>{0, 1, 1, 2, 3, 5, 8, 13}[static_cast<std::size_t>(i % 8)];
    CHECK(sum == expected);
  });
}

TEST_CASE("a token stopped before the run: nothing runs") {
  on_each_runtime([](weft::runtime& rt) {
    std::stop_source source;
    source.request_stop();
    tracked::reset();
    bool ran = false;
    CHECK_THROWS_AS(rt.run(
                        {.stop = source.get_token()}, [&](const tracked&) { ran = true; }, tracked(1)),
                    weft::cancelled);
    CHECK_THROWS_AS(rt.run({.stop = source.get_token()}, [&] { return ran = true; }), weft::cancelled);
    CHECK_FALSE(ran);
    CHECK(tracked::alive == 0);
    CHECK(weft_test::works(rt));
  });
}

TEST_CASE("a token stopped during the run: what has not started is dropped, the rest ends") {
  weft::runtime rt(weft_test::two_and_deferring());
  for (int i = 0; i < 30; ++i) {
    tracked::reset();
    std::stop_source source;
    std::atomic<bool> running{false}, ended{false}, later{false};
    std::thread outside([&] {
      wait_until([&] { return running.load(); });
      source.request_stop();
    });
    CHECK_THROWS_AS(rt.run({.stop = source.get_token()},
                           [&] {
                             weft::fork([&] {
                               running = true;
                               wait_until([&] { return weft::this_task::stop_token().stop_requested(); });
                               ended = true;
                             });
                             wait_until([&] { return weft::this_task::stop_token().stop_requested(); });
                             weft::fork([&, t = tracked(1)] { later = true; });
                             weft::fork([&](tracked) { later = true; }, tracked(2));
                           }),
                    weft::cancelled);
    outside.join();
    CHECK(ended == running);
    CHECK_FALSE(later);
    CHECK(tracked::alive == 0);
  }
  CHECK(rt.counters().dropped > 0);
  CHECK(weft_test::works(rt));
}

TEST_CASE("a token stopped after the run, or never, changes nothing") {
  on_each_runtime([](weft::runtime& rt) {
    std::stop_source source;
    CHECK(rt.run({.stop = source.get_token()}, fib, 9L) == 34);
    source.request_stop();
    CHECK(rt.run(fib, 9L) == 34);
    CHECK(rt.run({}, fib, 9L) == 34);
    const weft::run_options none;
    CHECK(rt.run(none, fib, 9L) == 34);
  });
}

TEST_CASE("a stopped run does not stop another run, nor the run around it") {
  weft::runtime rt({.workers = 2});
  std::stop_source source;
  source.request_stop();
  int cancelled = 0;
  long sum = 0;
  rt.run([&] {
    try {
      rt.run({.stop = source.get_token()}, [] {});
    } catch (const weft::cancelled&) {
      ++cancelled;
    }
    try {
      rt.run([] { weft::this_task::request_stop(); });
    } catch (const weft::cancelled&) {
      ++cancelled;
    }
    auto r = weft::fork(fib, 10L);
    weft::sync();
    sum = r.get();
  });
  CHECK(cancelled == 2);
  CHECK(sum == 55);
}

TEST_CASE("an exception that was thrown before the stop leaves run") {
  weft::runtime rt(weft_test::alone_and_deferring());
  CHECK_THROWS_AS(rt.run([] {
    weft::fork([] { throw 3; });
    weft::fork([] { weft::this_task::request_stop(); });
  }),
                  int);
}

TEST_CASE("a runtime tells how many workers it has, and what they did") {
  const weft::runtime one({.workers = 1}), five({.workers = 5}), usable;
  CHECK(one.workers() == 1);
  CHECK(five.workers() == 5);
  CHECK(usable.workers() >= 1);
  weft::runtime rt(weft_test::alone_and_deferring());
  CHECK(rt.counters().deferred == 0);
  rt.run([] {
    for (int i = 0; i < 10; ++i) weft::fork([] {});
  });
  CHECK(rt.counters().deferred == 10);
  CHECK(rt.counters().steals == 0);
  CHECK(rt.counters().contexts >= 1);
  CHECK(rt.counters().stack_high_water > 0);
  CHECK(rt.counters().stack_high_water <= std::size_t{1} << 20);
}

TEST_CASE("options that make no sense are refused when the runtime is made") {
  CHECK_THROWS_AS(weft::runtime({.stack_size = 1}), weft::option_error);
  CHECK_THROWS_AS(weft::runtime({.workers = 1'000'000}), weft::option_error);
}
