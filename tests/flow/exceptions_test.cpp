// SPDX-License-Identifier: BSL-1.0
// Exceptions arrive at run and sync as the serial program would have thrown them first.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

/// The int that leaves a run of f; -1 if none does.
template <class F>
int thrown_by(weft::runtime& rt, F&& f) {
  try {
    rt.run(f);
  } catch (int n) {
    return n;
  }
  return -1;
}

/// The int that leaves sync; -1 if none does.
int thrown_by_sync() {
  try {
    weft::sync();
  } catch (int n) {
    return n;
  }
  return -1;
}

}  // namespace

TEST_CASE("fork does not throw what the task throws") {
  on_each_runtime([](weft::runtime& rt) {
    bool went_on = false;
    CHECK(thrown_by(rt, [&] {
            weft::fork([] { throw 1; });
            went_on = true;
          }) == 1);
    CHECK(went_on);
  });
}

TEST_CASE("of two exceptions in one frame the first in reference order counts") {
  on_each_runtime([](weft::runtime& rt) {
    for (int i = 0; i < 20; ++i) {
      CHECK(thrown_by(rt, [] {
              weft::fork([] {
                std::this_thread::yield();
                throw 1;
              });
              weft::fork([] { throw 2; });
            }) == 1);
      CHECK(thrown_by(rt, [] {
              weft::fork([] { weft::fork([] { throw 1; }); });
              throw 2;
            }) == 1);
      CHECK(thrown_by(rt, [] {
              weft::fork([] {
                weft::fork([] {});
                throw 1;
              });
              weft::fork([] { throw 2; });
              throw 3;
            }) == 1);
    }
  });
}

TEST_CASE("sync throws the first exception of the children, once, and the body may go on") {
  on_each_runtime([](weft::runtime& rt) {
    std::vector<int> log;
    rt.run([&] {
      for (int i = 1; i <= 5; ++i) {
        weft::fork([i] { throw i; });
        weft::fork([i] { throw 10 * i; });
        log.push_back(thrown_by_sync());
        log.push_back(thrown_by_sync());
        auto r = weft::fork([i] { return 100 * i; });
        weft::sync();
        log.push_back(r.get());
      }
    });
    CHECK(log == std::vector<int>{1, -1, 100, 2, -1, 200, 3, -1, 300, 4, -1, 400, 5, -1, 500});
  });
}

TEST_CASE("an exception that sync threw and nobody caught ends the task there") {
  on_each_runtime([](weft::runtime& rt) {
    bool after = false;
    int caught = 0;
    CHECK(thrown_by(rt, [&] {
            weft::fork([&] {
              weft::fork([] { throw 4; });
              weft::sync();
              after = true;
            });
            caught = thrown_by_sync();
            throw caught + 1;
          }) == 5);
    CHECK_FALSE(after);
    CHECK(caught == 4);
  });
}

TEST_CASE("what a handler throws takes the place of what it caught") {
  on_each_runtime([](weft::runtime& rt) {
    CHECK(thrown_by(rt, [] {
            weft::fork([] {
              weft::fork([] { throw 1; });
              if (thrown_by_sync() == 1) throw 2;
            });
            weft::fork([] { throw 3; });
          }) == 2);
  });
}

TEST_CASE("tasks before the exception have run, those after it with its data have not") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> before{0};
    std::atomic<bool> after{false};
    weft::shared<int> a(0);
    CHECK(thrown_by(rt, [&] {
            for (int i = 0; i < 10; ++i) weft::fork([&](int& v) { v = ++before; }, weft::update(a));
            weft::fork([](int&) { throw 1; }, weft::update(a));
            weft::fork([&](const int&) { after = true; }, weft::read(a));
          }) == 1);
    CHECK(before == 10);
    CHECK_FALSE(after);
    CHECK(a.get() == 10);
  });
}

TEST_CASE("a task that throws between forks: the earlier children count, later ones do not exist") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::string> text("");
    CHECK(thrown_by(rt, [&] {
            weft::fork(
                [](weft::update<std::string> t) {
                  weft::fork([](std::string& s) { s += 'a'; }, t);
                  weft::fork([](std::string& s) { s += 'b'; }, t);
                  if (true) throw 7;
                  weft::fork([](std::string& s) { s += 'c'; }, t);
                },
                text);
            weft::fork([](std::string& s) { s += 'd'; }, weft::update(text));
          }) == 7);
    CHECK(text.get() == "ab");
  });
}

TEST_CASE("the exception object is the one that was thrown") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    struct failure : std::runtime_error {
      failure() : std::runtime_error("the text"), counted(5) {}
      tracked counted;
    };
    bool right = false;
    try {
      rt.run([] {
        weft::fork([]() -> std::string { throw failure(); });
        weft::fork([] {});
      });
    } catch (const std::exception& e) {
      right = dynamic_cast<const failure*>(&e) != nullptr && e.what() == std::string("the text");
    }
    CHECK(right);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("an exception passes a run inside a task") {
  on_each_runtime([](weft::runtime& rt) {
    int caught = 0;
    CHECK(thrown_by(rt, [&] {
            try {
              rt.run([] { weft::fork([] { throw 1; }); });
            } catch (int n) {
              caught = n;
            }
            rt.run([] { throw 2; });
          }) == 2);
    CHECK(caught == 1);
    CHECK(weft_test::works(rt));
  });
}

TEST_CASE("a value that run would return is not made when it throws") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    CHECK_THROWS_AS(rt.run([]() -> tracked {
      weft::fork([] { throw 1; });
      return tracked(1);
    }),
                    int);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("what is left of a failed run does not disturb the next") {
  on_each_runtime([](weft::runtime& rt) {
    for (int i = 0; i < 20; ++i) {
      CHECK(thrown_by(rt, [i] {
              weft::shared<int> x(0);
              for (int k = 0; k < 30; ++k)
                weft::fork(
                    [i, k](int& v) {
                      v += k;
                      if (k == i) throw k;
                    },
                    weft::update(x));
            }) == i);
      CHECK(weft_test::works(rt));
    }
  });
}
