// SPDX-License-Identifier: BSL-1.0
// Checked builds: a task that waits with a lock, and a right that is used when its task has ended, stop the
// program; whoever does neither is never stopped.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <weft/threads/condition.hpp>
#include <weft/threads/semaphore.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using weft::this_task::no_suspend;
using weft_test::contains;
using weft_test::on_each_runtime;

static_assert(WEFT_CHECKED);

namespace {

/// Checks that each of some runtimes is stopped with all of these by `f`, called with it outside tasks.
template <class F>
void check_stopped(const std::vector<std::string>& parts, F f, unsigned cap = 1u << 14) {
  for (auto options :
       {weft_test::alone_and_inlining(), weft_test::alone_and_deferring(), weft_test::two_and_deferring()}) {
    options.cap = cap;
    const auto end = weft_test::run_in_child([&] {
      weft::runtime rt(options);
      f(rt);
    });
    INFO("workers " << options.workers << ", inlining " << options.inlining << ": " << end.output);
    CHECK(end.aborted());
    for (const std::string& p : parts) CHECK_THAT(end.output, contains(p));
  }
}

const std::string file = "tied_test.cpp:";

}  // namespace

TEST_CASE("a change of a condition that waits") {
  check_stopped({"a weft::condition that is being changed"}, [](weft::runtime& rt) {
    rt.run([] {
      weft::condition<int> stage(0);
      weft::semaphore never(0);
      stage.update([&never](int& v) {
        never.acquire();
        v = 1;
      });
    });
  });
}

TEST_CASE("a predicate of a condition that waits") {
  check_stopped({"a weft::condition that is looked at"}, [](weft::runtime& rt) {
    rt.run([] {
      weft::condition<int> stage(0);
      weft::semaphore never(0);
      stage.wait([&never](int) {
        never.acquire();
        return true;
      });
    });
  });
}

TEST_CASE("sync while something is held") {
  const unsigned line = __LINE__ + 5;
  check_stopped({"weft: task 'locker' calls sync() while 'the table' is held", file + std::to_string(line)},
                [](weft::runtime& rt) {
                  rt.run([] {
                    weft::fork({.name = "locker"}, [] {
                      const no_suspend hold("the table");
                      {
                        const no_suspend within("within");
                      }
                      weft::sync();
                    });
                  });
                });
  check_stopped({"task 'below' calls sync() while 'inner' is held"}, [](weft::runtime& rt) {
    rt.run([] {
      const no_suspend outer("outer");
      const no_suspend inner("inner");
      weft::fork({.name = "below"}, [] { weft::sync(); });
      weft::fork({.name = "below"}, [] {
        const no_suspend here("inner");
        weft::sync();
      });
    });
  });
}

TEST_CASE("a nested run while something is held") {
  check_stopped({"task 'caller' calls run() while 'the table' is held"}, [](weft::runtime& rt) {
    rt.run([&] {
      weft::fork({.name = "caller"}, [&] {
        const no_suspend hold("the table");
        rt.run([] {});
      });
    });
  });
}

TEST_CASE("a fork that has to make room while something is held") {
  check_stopped(
      {"forks one task too many, and so has to run some first, while 'the table' is held"},
      [](weft::runtime& rt) {
        weft::shared<long> x(0L);
        rt.run([&] {
          const no_suspend hold("the table");
          for (int i = 0; i < 100; ++i)
            weft::fork({.local = true, .event = true}, [](long&) {}, weft::update(x));
        });
      },
      20);
}

TEST_CASE("a scope that ends in another task") {
  check_stopped({"the scope of 'the table'", file, " ends in task 'other', where it did not begin"},
                [](weft::runtime& rt) {
                  std::unique_ptr<no_suspend> kept;
                  rt.run([&] { kept.reset(new no_suspend("the table")); });
                  weft::runtime second({.workers = 1, .inlining = false});
                  second.run([&] { weft::fork({.name = "other"}, [&] { kept.reset(); }); });
                });
  check_stopped({"the scope of 'the table'", " ends in task 'none', where it did not begin"},
                [](weft::runtime& rt) {
                  std::unique_ptr<no_suspend> kept;
                  rt.run([&] { kept.reset(new no_suspend("the table")); });
                  kept.reset();
                });
  check_stopped({"the scope of 'first'", "or before one within it"}, [](weft::runtime& rt) {
    rt.run([&] {
      std::unique_ptr<no_suspend> first(new no_suspend("first"));
      const no_suspend second("second");
      first.reset();
    });
  });
}

TEST_CASE("legal programs are not stopped: locks that are let go before the task waits") {
  std::mutex table;
  on_each_runtime([&](weft::runtime& rt) {
    long sum = 0;
    rt.run([&] {
      for (int i = 0; i < 20; ++i)
        weft::fork([&] {
          {
            const std::lock_guard lock(table);
            const no_suspend hold("the table");
            const no_suspend twice("and within");
            ++sum;
          }
          weft::fork([] {});
          weft::sync();
        });
      weft::sync();
    });
    CHECK(sum == 20);
  });
  weft::runtime rt({.workers = 1});
  const no_suspend outside("outside");  // this thread does not move
  rt.run([] { weft::sync(); });
}

TEST_CASE("a right that is used when its task has ended") {
  check_stopped({"weft: a right that was given to task 'owner' is used in task 'thief' after that has ended"},
                [](weft::runtime& rt) {
                  weft::shared<long> x(0L);
                  std::optional<weft::update<long>> kept;
                  rt.run([&] {
                    weft::fork({.name = "owner"}, [&](weft::update<long> v) { kept.emplace(v); }, x);
                    weft::sync();
                    weft::fork({.name = "thief"}, [&] { std::printf("%ld", **kept); });
                  });
                });
  check_stopped(
      {"weft: a right that was given to task 'owner' is used after that has ended"}, [](weft::runtime& rt) {
        weft::shared<long> x(0L);
        std::optional<weft::write<long>> kept;
        rt.run([&] { weft::fork({.name = "owner"}, [&](weft::write<long> v) { kept.emplace(v); }, x); });
        *kept = 1;
      });
  check_stopped({"a right that was given to task 'owner' is used"}, [](weft::runtime& rt) {
    weft::shared<long> x(0L);
    std::optional<weft::read<long>> kept;
    rt.run([&] {
      weft::fork(
          {.name = "owner"},
          [&](weft::update<long> v) {
            kept.emplace(weft::read(v));
            weft::fork([](weft::update<long> w) { *w += 1; }, v);
          },
          x);
    });
    rt.run([&] { std::printf("%ld", kept->get()); });
  });
}

TEST_CASE("a right outlives its runtime, and is still known") {
  const auto end = weft_test::run_in_child([] {
    weft::shared<long> x(0L);
    std::optional<weft::read<long>> kept;
    {
      weft::runtime rt({.workers = 2});
      rt.run([&] { weft::fork([&](weft::read<long> v) { kept.emplace(v); }, x); });
    }
    std::printf("%ld", kept->get());
  });
  CHECK(end.aborted());
  CHECK_THAT(end.output, contains("a right that was given to task 'task' is used after that has ended"));
}

TEST_CASE("legal programs are not stopped: a task has not ended before those below it") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> x(7L);
    std::atomic<long> sum{0};
    rt.run([&] {
      for (int i = 0; i < 10; ++i)
        weft::fork(
            [&](weft::read<long> v) {
              sum += *v;
              for (int k = 0; k < 3; ++k)
                weft::fork([&sum, v] {  // reads what the task around it may read until it has ended
                  sum += *v;
                  weft::fork([&sum, v] { sum += v.get(); });
                });
            },
            x);
    });
    CHECK(sum == 10 * 7 * 7);
  });
}
