// SPDX-License-Identifier: BSL-1.0
// Checked builds: a body that uses what it has delegated is stopped, both tasks named; a legal one never is.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <weft/observe.hpp>
#include <weft/threads/mutex.hpp>
#include <weft/threads/shared_mutex.hpp>
#include <weft/threads/spawn.hpp>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using weft_test::contains;
using weft_test::on_each_runtime;

static_assert(WEFT_CHECKED);

namespace {

const weft::task_options parent{.name = "parent"}, child{.name = "child"};

void increment(weft::update<long> v) { *v += 1; }
void set(weft::write<long> v) { v = 1; }
void look(weft::read<long> v) { static_cast<void>(*v); }

/// Checks that a task named parent that runs f with an update right is stopped with this sentence, whether
/// its children run inside fork or not.
template <class F>
void check_stopped(const std::string& sentence, F f) {
  for (const auto& options :
       {weft_test::alone_and_inlining(), weft_test::alone_and_deferring(), weft_test::two_and_deferring()}) {
    const auto end = weft_test::run_in_child([&] {
      weft::runtime rt(options);
      weft::shared<long> x(0L);
      rt.run([&] { weft::fork(parent, f, weft::update(x)); });
    });
    INFO("workers " << options.workers << ", inlining " << options.inlining << ": " << end.output);
    CHECK(end.aborted());
    CHECK_THAT(end.output, contains("weft: task 'parent' " + sentence));
    CHECK_THAT(end.output, contains("task 'child'; call weft::sync() first"));
  }
}

}  // namespace

TEST_CASE("a body of a recorded run may use after sync what it has delegated") {
  weft::runtime rt({.workers = 1});
  weft::observe::work_and_span ws;
  const long sum = rt.run({.record = &ws}, [] {
    const weft::shared<long> a = weft::fork([] { return 1L; });
    weft::shared<long> b(1L);
    weft::fork(increment, b);
    weft::sync();
    return a.get() + b.get();
  });
  CHECK(sum == 3);
}

TEST_CASE("a fork that throws has delegated nothing") {
  struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("no copy"); }
    void operator()(weft::update<long>) const {}
  };
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> x(0L), y(0L);
    rt.run(
        [](weft::update<long> v, weft::update<long> w) {
          const throws_when_copied task;
          weft::fork(child, increment, w);
          CHECK_THROWS_WITH(weft::fork(task, v), "no copy");
          CHECK_THROWS_WITH(weft::fork(child, task, v), "no copy");
          *v = 1;
        },
        x, y);
    CHECK(x.get() == 1);
    CHECK(y.get() == 1);
  });
}

template <class Mutex, class Second>
void check_misused(const char* sentence, const Second& second) {
  const auto end = weft_test::run_in_child([&second] {
    weft::runtime rt({.workers = 1});
    Mutex m;
    rt.run([&m, &second] {
      const std::lock_guard hold(m);
      second(m);
      weft::sync();
    });
  });
  CHECK(end.aborted());
  CHECK_THAT(end.output, contains(sentence));
}

TEST_CASE("a mutex that another body has locked is not unlocked") {
  const auto other = [](auto& m) { weft::spawn([&m] { m.unlock(); }); };
  check_misused<weft::mutex>("weft: a weft::mutex is unlocked by a body that has not locked it", other);
  check_misused<weft::shared_mutex>("weft: a weft::shared_mutex is unlocked by a body that has not locked it",
                                    other);
}

TEST_CASE("a body does not lock a mutex twice") {
  const auto again = [](auto& m) { m.lock(); };
  check_misused<weft::mutex>("weft: a weft::mutex is locked by a body that has locked it already", again);
  const char* const shared =
      "weft: a weft::shared_mutex is locked by a body that has locked it for writing already";
  check_misused<weft::shared_mutex>(shared, again);
  check_misused<weft::shared_mutex>(shared, [](auto& m) { m.lock_shared(); });
}

TEST_CASE("a mutex is locked again after another body had it") {
  weft::runtime rt({.workers = 2});
  weft::mutex m;
  weft::shared_mutex s;
  long sum = 0;
  rt.run([&] {
    for (int body = 0; body < 4; ++body)
      weft::spawn([&] {
        for (int i = 0; i < 1'000; ++i) {
          const std::scoped_lock hold(m, s);
          ++sum;
        }
      });
  });
  const std::scoped_lock hold(m, s);  // outside tasks: one more that may have it
  CHECK(sum == 4'000);
}

TEST_CASE("a right to contribute used after it was delegated") {
  check_stopped("changes an object after it delegated the right to change it to ", [](weft::update<long> v) {
    weft::fork(
        parent,
        [](auto sum) {
          sum += 1L;
          weft::fork(child, [](auto part) { part += 2L; }, sum);
          sum += 3L;
        },
        weft::reduce(v, std::plus<>{}));
  });
}

TEST_CASE("a right used after it was delegated") {
  check_stopped("reads an object after it delegated the right to change it to ", [](weft::update<long> v) {
    weft::fork(child, increment, v);
    std::printf("%ld", *v);
  });
  check_stopped("reads an object after it delegated the right to change it to ", [](weft::update<long> v) {
    weft::fork(child, set, v);
    std::printf("%ld", v.get());
  });
  check_stopped("changes an object after it delegated the right to change it to ", [](weft::update<long> v) {
    weft::fork(child, increment, v);
    v = 3;
  });
  check_stopped("changes an object after it delegated the right to read it to ", [](weft::update<long> v) {
    weft::fork(child, look, v);
    v = 3;
  });
  check_stopped("changes an object after it delegated the right to read it to ", [](weft::update<long> v) {
    weft::fork(child, [](const long&) {}, weft::read(v));
    const weft::write narrowed(v);
    narrowed = 4;
  });
  check_stopped("reads an object after it delegated the right to change it to ", [](weft::update<long> v) {
    weft::fork(child, increment, v);
    weft::sync();
    *v += 1;
    weft::fork(child, increment, v);
    std::printf("%ld", *v);
  });
}

TEST_CASE("an object's value taken while children may change it") {
  check_stopped("reads an object after it delegated the right to change it to ", [](weft::update<long>) {
    weft::shared<long> own(1L);
    weft::fork(child, increment, own);
    std::printf("%ld", own.get());
  });
  check_stopped("reads an object after it delegated the right to change it to ", [](weft::update<long>) {
    weft::shared<long> own;
    weft::fork(child, [](long& v) { v = 1; }, weft::write(own));
    std::printf("%ld", own.get());
  });
}

TEST_CASE("a result taken before sync, even where it is there already") {
  for (const auto& options : {weft_test::alone_and_inlining(), weft_test::alone_and_deferring()}) {
    const auto end = weft_test::run_in_child([&] {
      weft::runtime rt(options);
      rt.run([] {
        auto r = weft::fork(child, [] { return 1; });
        std::printf("%d", r.get());
      });
    });
    INFO(end.output);
    CHECK(end.aborted());
    CHECK_THAT(end.output, contains("weft: "));
    CHECK_THAT(end.output, contains("sync()"));
  }
}

TEST_CASE("a grandchild's misuse names the tasks that it is about") {
  const auto end = weft_test::run_in_child([] {
    weft::runtime rt(weft_test::alone_and_inlining());
    weft::shared<long> x(0L);
    rt.run([&] {
      weft::fork(
          {.name = "top"},
          [](weft::update<long> a) {
            weft::fork(
                {.name = "middle"},
                [](weft::update<long> b) {
                  weft::fork({.name = "bottom"}, increment, b);
                  *b += 1;
                },
                a);
          },
          x);
    });
  });
  CHECK(end.aborted());
  CHECK_THAT(end.output, contains("task 'middle' reads an object"));
  CHECK_THAT(end.output, contains("to task 'bottom'"));
}

TEST_CASE("legal programs are not stopped: full use after sync, reading what is read") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    long seen = 0;
    rt.run([&] {
      weft::fork(
          [&](weft::update<long> v) {
            *v += 1;
            for (int i = 0; i < 5; ++i) {
              weft::fork(increment, v);
              weft::fork(look, v);
              weft::sync();
              *v += 1;
              v = *v * 2;
              weft::fork(look, v);
              weft::fork([](const long&) {}, weft::read(v));
              seen += *v;  // both may read
              weft::sync();
            }
            weft::fork(increment, v);
          },
          x);
    });
    CHECK(x.get() == 1 + 32 - 1 + 4 * 31 + 1);
    CHECK(seen > 0);
  });
}

TEST_CASE("legal programs are not stopped: each body has a log of its own") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    rt.run([&] {
      for (int i = 0; i < 10; ++i)
        weft::fork(
            [](weft::update<long> a) {  // each uses what the one around it has delegated
              *a += 1;
              weft::fork(
                  [](weft::update<long> b) {
                    *b += 1;
                    weft::fork([](weft::update<long> c) { *c += 1; }, b);
                  },
                  a);
            },
            x);
    });
    CHECK(x.get() == 30);
  });
}

TEST_CASE("legal programs are not stopped: memory that is used again is another object") {
  on_each_runtime([](weft::runtime& rt) {
    long sum = 0;
    rt.run([&] {
      for (int i = 0; i < 100; ++i) {
        weft::shared<long> own(static_cast<long>(i));
        sum += own.get();
        weft::fork(increment, own);
        if (i % 7 == 0) {
          weft::sync();
          sum += own.get();
        }
      }
      for (int i = 0; i < 10; ++i) {
        auto r = weft::fork([i] { return i; });
        weft::sync();
        sum += r.get();
      }
    });
    CHECK(sum > 0);
  });
}

TEST_CASE("legal programs are not stopped: run inside a task, exceptions, stolen tasks") {
  weft::runtime rt(weft_test::two_and_deferring());
  weft::shared<long> x(0L);
  for (int i = 0; i < 30; ++i)
    rt.run([&] {
      weft::fork(
          [&](weft::update<long> v) {
            rt.run(
                [](weft::update<long> w) {
                  weft::fork(increment, w);
                  weft::sync();
                  *w += 1;
                },
                v);
            *v += 1;
            weft_test::fork_to_thief([] {});  // before the throw: what comes after it may be dropped
            weft::fork(
                [](weft::update<long> w) {
                  *w += 1;
                  throw 1;
                },
                v);
            try {
              weft::sync();
            } catch (int) {
              *v += 1;
            }
          },
          x);
    });
  CHECK(x.get() == 150);
  CHECK(rt.counters().steals > 0);
}

TEST_CASE("outside tasks nothing is checked") {
  weft::runtime rt({.workers = 1});
  weft::shared<long> x(1L);
  CHECK(x.get() == 1);
  rt.run(increment, x);
  CHECK(x.get() == 2);
}
