// SPDX-License-Identifier: BSL-1.0
// Exceptions from every position a task can be in; afterwards nothing is left and the runtime works.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "support/record.hpp"
#include "support/tracked.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

using weft_test::tracked;
using weft_test::wait_until;

namespace {

/// An exception that carries a counted value.
struct failure {
  explicit failure(long n) : which(n) {}
  tracked which;
};

/// Calls f on runtimes of several shapes and checks each of them afterwards.
template <class F>
void on_each_runtime(F&& f) {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false})
      for (const unsigned surplus : {0u, 4u}) {
        INFO("workers " << workers << ", inlining " << inlining << ", surplus " << surplus);
        tracked::reset();
        weft::runtime rt({.workers = workers, .inlining = inlining, .surplus = surplus});
        f(rt);
        CHECK(tracked::alive == 0);
        CHECK(weft_test::works(rt));
      }
}

/// The number of the failure that leaves a run of f, -1 if none does.
template <class F>
long failure_of(weft::runtime& rt, F&& f) {
  try {
    rt.run(f);
  } catch (const failure& e) {
    return e.which.value;
  }
  return -1;
}

/// Two workers, nothing runs inside fork: a task that starts while its parent is busy was stolen.
weft::runtime_options two_without_inlining() { return {.workers = 2, .inlining = false}; }

}  // namespace

TEST_CASE("an exception of the run's own body leaves run") {
  on_each_runtime([](weft::runtime& rt) {
    CHECK(failure_of(rt, [] { throw failure(3); }) == 3);
    CHECK(failure_of(rt, [] {
            weft::shared<tracked> a(tracked(1)), empty;
            weft::fork([](tracked& v) { v.value = 2; }, weft::update(a));
            weft::fork([t = tracked(5)] { static_cast<void>(t); });
            throw failure(4);
          }) == 4);
  });
}

TEST_CASE("an exception of a child leaves run, or the parent's sync") {
  on_each_runtime([](weft::runtime& rt) {
    CHECK(failure_of(rt, [] { weft::fork([] { throw failure(1); }); }) == 1);
    std::atomic<bool> after_sync{false};
    CHECK(failure_of(rt, [&] {
            weft::fork([] { throw failure(2); });
            weft::sync();
            after_sync = true;
          }) == 2);
    CHECK(!after_sync);
    CHECK(failure_of(rt, [] {
            weft::shared<tracked> a;
            weft::fork(
                [](tracked& v) {
                  v.value = 1;
                  throw failure(3);
                },
                weft::write(a));
            weft::fork([](const tracked&) {}, weft::read(a));
            weft::fork([](tracked&) { throw failure(4); }, weft::update(a));
          }) == 3);
  });
}

TEST_CASE("an exception of a stolen task leaves run") {
  weft::runtime rt(two_without_inlining());
  for (int i = 0; i < 50; ++i) {
    tracked::reset();
    std::atomic<bool> started{false};
    bool stolen = false;
    CHECK(failure_of(rt, [&] {
            weft::fork([&, t = tracked(1)] {
              started = true;
              throw failure(t.value);
            });
            stolen = wait_until([&] { return started.load(); });
          }) == 1);
    CHECK(stolen);
    CHECK(tracked::alive == 0);
  }
  CHECK(rt.counters().steals >= 50);
  CHECK(weft_test::works(rt));
}

TEST_CASE("an exception arrives at a body that is suspended in sync") {
  weft::runtime rt(two_without_inlining());
  const auto suspensions = [&] { return rt.counters().suspensions; };
  int caught = 0;
  for (int i = 0; i < 50; ++i) {
    tracked::reset();
    std::atomic<bool> started{false}, late{false};
    rt.run([&] {
      const auto before = suspensions();
      weft::fork([&] {
        started = true;
        if (!wait_until([&] { return suspensions() > before; })) late = true;
        throw failure(7);
      });
      if (!wait_until([&] { return started.load(); })) late = true;
      try {
        weft::sync();
      } catch (const failure& e) {
        caught += e.which.value == 7;
      }
    });
    CHECK(!late);
    CHECK(tracked::alive == 0);
  }
  CHECK(caught == 50);
  CHECK(suspensions() >= 50);
  CHECK(weft_test::works(rt));
}

namespace {
void descend(int depth, bool with_sync) {
  if (depth == 0) throw failure(10);
  weft::fork([=, t = tracked(depth)] { descend(static_cast<int>(t.value) - 1, with_sync); });
  weft::fork([t = tracked(depth)] { static_cast<void>(t); });
  if (with_sync && depth % 2 == 0) weft::sync();
}
}  // namespace

TEST_CASE("an exception passes through nested tasks") {
  on_each_runtime([](weft::runtime& rt) {
    for (const bool with_sync : {false, true})
      for (int depth = 1; depth < 40; depth += 6)
        CHECK(failure_of(rt, [=] { descend(depth, with_sync); }) == 10);
  });
}

TEST_CASE("of several exceptions the serially first one leaves run") {
  on_each_runtime([](weft::runtime& rt) {
    weft_test::random dice(7);
    for (int i = 0; i < 40; ++i) {
      const long first = static_cast<long>(dice.below(6));
      std::atomic<int> earlier{0};
      CHECK(failure_of(rt, [&] {
              for (long k = 0; k < 8; ++k)
                weft::fork([&, k, pause = std::chrono::microseconds(dice.below(200))] {
                  std::this_thread::sleep_for(k == first ? 2 * pause : pause);
                  if (k < first) ++earlier;
                  if (k >= first) throw failure(k);
                });
              weft::fork([] { weft::fork([] { throw failure(100); }); });
              throw failure(101);
            }) == first);
      CHECK(earlier == first);  // tasks before the exception in reference order run
    }
  });
}

TEST_CASE("a body may catch its children's exception and go on") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> siblings{0};
    weft::shared<long> r;
    int caught = 0;
    rt.run([&] {
      weft::fork(
          [&](weft::write<long> out) {
            for (int i = 0; i < 10; ++i) {
              weft::fork([i] { throw failure(i); });
              weft::fork([] { throw std::runtime_error("later"); });
              try {
                weft::sync();
              } catch (const failure& e) {
                caught += e.which.value == i;
              }
            }
            weft::fork([](weft::write<long> v) { v = 42; }, out);
          },
          weft::write(r));
      for (int i = 0; i < 20; ++i) weft::fork([&] { ++siblings; });
    });
    CHECK(caught == 10);
    CHECK(siblings == 20);  // what comes after a task that caught everything is not dropped
    CHECK(r.get() == 42);
  });
}

TEST_CASE("exceptions keep their type, whatever it is") {
  struct base_of_nothing {
    int a, b;
  };
  on_each_runtime([](weft::runtime& rt) {
    CHECK_THROWS_AS(rt.run([] { weft::fork([] { throw 42; }); }), int);
    CHECK_THROWS_AS(rt.run([] { weft::fork([] { throw "text"; }); }), const char*);
    CHECK_THROWS_AS(rt.run([] { weft::fork([] { throw std::string("text"); }); }), std::string);
    CHECK_THROWS_AS(rt.run([] { weft::fork([] { throw base_of_nothing{1, 2}; }); }), base_of_nothing);
    CHECK_THROWS_AS(rt.run([] { weft::fork([] { throw std::out_of_range("x"); }); }), std::out_of_range);
    CHECK_THROWS_AS(rt.run([]() -> long { throw 1.5; }), double);
  });
}

TEST_CASE("an exception of one run does not touch another run of the same runtime") {
  weft::runtime rt({.workers = 3});
  std::atomic<int> wrong{0};
  std::thread other([&] {
    for (int i = 0; i < 300; ++i) wrong += rt.run(weft_test::fib, 10L) != 55;
  });
  for (int i = 0; i < 300; ++i) wrong += failure_of(rt, [=] { descend(5 + i % 7, i % 2 == 0); }) != 10;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("a body that waits inside a handler keeps its exception") {
  weft::runtime rt({.workers = 4, .inlining = false});
  weft_test::record<long> wrong;
  rt.run([&] {
    for (long i = 0; i < 200; ++i) {
      if (i % 2 == 0) weft::sync();  // two at a time: the other workers have to take tasks out of these
      weft::fork([&, i] {
        try {
          try {
            throw failure(i);
          } catch (const failure&) {
            for (int k = 0; k < 3; ++k)
              weft::fork([=] {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
                try {
                  throw failure(1000 + i);
                } catch (const failure&) {
                  weft::fork([] { std::this_thread::yield(); });
                  weft::sync();
                }
              });
            weft::sync();
            throw;  // still this body's own
          }
        } catch (const failure& e) {
          if (e.which.value != i) wrong.add(i);
        }
        if (std::current_exception() != nullptr) wrong.add(-i);
      });
    }
  });
  CHECK(wrong.entries().empty());
  CHECK(rt.counters().suspensions > 0);
  CHECK(weft_test::works(rt));
}

TEST_CASE("a body that waits while it is unwound goes on unwinding") {
  weft::runtime rt(two_without_inlining());
  struct joiner {
    int& count;
    ~joiner() {
      weft::sync();
      count = std::uncaught_exceptions();
    }
  };
  const auto suspensions = [&] { return rt.counters().suspensions; };
  for (int i = 0; i < 50; ++i) {
    tracked::reset();
    int count = -1;
    std::atomic<bool> started{false}, late{false};
    CHECK(failure_of(rt, [&] {
            const auto before = suspensions();
            const joiner j{count};
            weft::fork([&] {
              started = true;
              if (!wait_until([&] { return suspensions() > before; })) late = true;
              try {
                throw failure(1);
              } catch (const failure&) {
              }
              if (std::uncaught_exceptions() != 0) late = true;
            });
            if (!wait_until([&] { return started.load(); })) late = true;
            throw failure(2);
          }) == 2);
    CHECK(!late);
    CHECK(count == 1);
    CHECK(tracked::alive == 0);
  }
}
