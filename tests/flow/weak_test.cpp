// SPDX-License-Identifier: BSL-1.0
// A task with weak rights only that syncs: what older tasks throw is not its business, what its own children
// throw is.
#include "flow/runtimes.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

using weft_test::wait_until;

namespace {

using weak = weft::weak_update<int>;

/// Calls f on runtimes that keep older tasks pending in different ways.
template <class F>
void on_pending_runtimes(F&& f) {
  for (const unsigned workers : {1u, 2u, 3u, 8u})
    for (const bool inlining : {false, true})
      for (const unsigned cap : {1u << 14, 3u}) {
        INFO("workers " << workers << ", inlining " << inlining << ", cap " << cap);
        weft::runtime rt({.workers = workers, .inlining = inlining, .surplus = 4, .cap = cap});
        for (int i = 0; i < 10; ++i) f(rt);
        CHECK(weft_test::works(rt));
      }
}

/// What leaves sync: the int, 0 for nothing, -1 for weft::cancelled.
int synced() {
  try {
    weft::sync();
  } catch (int n) {
    return n;
  } catch (const weft::cancelled&) {
    return -1;
  }
  return 0;
}

/// The int that leaves a run of f; 0 if none does.
template <class F>
int thrown_by(weft::runtime& rt, F&& f) {
  try {
    rt.run(f);
  } catch (int n) {
    return n;
  }
  return 0;
}

void fail_with(int n) {
  std::this_thread::yield();
  throw n;
}

}  // namespace

TEST_CASE("a weak body cannot catch what an older task has thrown") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0);
    std::atomic<int> seen{0};
    std::atomic<bool> after{false}, later{false};
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int& v) { v = 1; }, weft::update(x));
            weft::fork([](int&) { fail_with(7); }, weft::update(x));
            weft::fork(
                [&](weak w) {
                  weft::fork([&](int&) { after = true; }, weft::update(w));
                  for (int i = 0; i < 3; ++i) seen = synced();  // each time
                  weft::fork([&](int&) { after = true; }, weft::update(w));
                },
                weft::weak_update(x));
            weft::fork([&](int&) { later = true; }, weft::update(x));
          }) == 7);
    CHECK((seen == 0 || seen == -1));  // 0: the body was dropped, as in the serial program
    CHECK_FALSE(after);
    CHECK_FALSE(later);
    CHECK(x.get() == 1);
  });
}

TEST_CASE("the body around a weak one catches what an older task has thrown, and goes on") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0), y(0);
    int first = 0, second = 0;
    CHECK(thrown_by(rt, [&] {
            for (int i = 0; i < 5; ++i) weft::fork([](int& v) { ++v; }, weft::update(x));
            weft::fork([](int&) { fail_with(3); }, weft::update(y));
            for (int i = 0; i < 3; ++i)
              weft::fork(
                  [](weak w) {
                    weft::fork([](int& v) { v += 100; }, weft::update(w));
                    synced();
                  },
                  weft::weak_update(y));
            first = synced();
            weft::fork([](weak w) { weft::fork([](int& v) { v = 5; }, weft::update(w)); },
                       weft::weak_update(y));
            second = synced();
          }) == 0);
    CHECK(first == 3);
    CHECK(second == 0);
    CHECK(x.get() == 5);
    CHECK(y.get() == 5);
  });
}

TEST_CASE("a weak body that lets the exception of an older task pass changes nothing") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0);
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int&) { fail_with(4); }, weft::update(x));
            weft::fork([](weak) { weft::sync(); }, weft::weak_update(x));
            weft::fork([](int&) { throw 5; }, weft::update(x));
          }) == 4);
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int&) { fail_with(4); }, weft::update(x));
            weft::fork(
                [](weak) {
                  synced();
                  throw 6;
                },
                weft::weak_update(x));
          }) == 4);
  });
}

TEST_CASE("a weak body catches what its own children throw") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0), y(0);
    std::vector<int> seen;
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int& v) { v = 1; }, weft::update(y));
            weft::fork(
                [&](weak w) {
                  for (int i = 1; i <= 3; ++i) {
                    weft::fork([i](int&) { fail_with(i); }, weft::update(w));
                    weft::fork([](int& v) { v = 100; }, weft::update(w));
                    seen.push_back(synced());
                    weft::fork([](int& v) { ++v; }, weft::update(w));
                  }
                },
                weft::weak_update(x));
            weft::fork([](int& v) { v *= 2; }, weft::update(x));
          }) == 0);
    CHECK(seen == std::vector<int>{1, 2, 3});
    CHECK(x.get() == 6);
    CHECK(y.get() == 1);
  });
}

TEST_CASE("among weak bodies in each other an exception belongs to the one whose child threw it") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0), y(0);
    for (const bool outermost : {false, true}) {
      int middle = 0, inner = 0;
      std::atomic<bool> after{false};
      const int left = thrown_by(rt, [&] {
        weft::fork([=](int& v) { outermost ? fail_with(1) : void(++v); }, weft::update(y));
        weft::fork(
            [&](weak w) {
              weft::fork([](int&) { fail_with(2); }, weft::update(w));
              weft::fork(
                  [&](weak v) {
                    weft::fork([&](int&) { after = true; }, weft::update(v));
                    inner = synced();
                    weft::fork([&](int&) { after = true; }, weft::update(v));
                    inner = synced();
                  },
                  w);
              middle = synced();
              weft::fork([](int& v) { v += 10; }, weft::update(w));
            },
            weft::weak_update(x));
      });
      CHECK(left == (outermost ? 1 : 0));
      if (!outermost) CHECK(middle == 2);
      if (outermost) CHECK((middle == 0 || middle == -1));
      CHECK((inner == 0 || inner == -1));
      CHECK_FALSE(after);
    }
    CHECK(x.get() == 10);
    CHECK(y.get() == 1);
  });
}

TEST_CASE("a weak brother that has ended is older, too") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0);
    int seen = 0;
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int& v) { v = 1; }, weft::update(x));
            weft::fork([](weak w) { weft::fork([](int&) { fail_with(8); }, weft::update(w)); },
                       weft::weak_update(x));
            weft::fork([](weak) { synced(); }, weft::weak_update(x));
            seen = synced();
          }) == 0);
    CHECK(seen == 8);
  });
}

TEST_CASE("tasks with a claim of their own below a weak body sync for themselves") {
  on_pending_runtimes([](weft::runtime& rt) {
    weft::shared<int> x(0), y(0);
    std::atomic<int> inside{0}, outside{0};
    const auto body = [&](weft::update<int> v) {
      weft::fork([](int&) { fail_with(2); }, v);
      inside = synced();
      weft::fork([](int& n) { n += 1; }, v);
    };
    CHECK(thrown_by(rt, [&] {
            weft::fork([](int& v) { v = 1; }, weft::update(y));
            weft::fork(
                [&](weak w) {
                  weft::fork(body, w);
                  outside = synced();
                  weft::fork({.name = "named"}, body, w);
                  outside = outside + synced();
                },
                weft::weak_update(x));
          }) == 0);
    CHECK(inside == 2);
    CHECK(outside == 0);
    CHECK(x.get() == 2);
  });
}

TEST_CASE("the cap makes room in a weak body: an older exception stays older, its own stays its own") {
  for (const unsigned workers : {1u, 2u, 3u, 8u})
    for (const unsigned cap : {1u, 2u, 5u, 30u})
      for (const int failing : {0, 3, 9, 10, 12, 40}) {
        INFO("workers " << workers << ", cap " << cap << ", failing " << failing);
        weft::runtime rt({.workers = workers, .inlining = false, .cap = cap});
        weft::shared<int> x(0);
        std::atomic<int> ran{0};
        int own = 0;
        const auto task = [&](int i) {
          return [&, i](int&) {
            if (i == failing) throw 1 + i;
            ++ran;
          };
        };
        const int left = thrown_by(rt, [&] {
          for (int i = 0; i < 10; ++i) weft::fork(task(i), weft::update(x));
          weft::fork(
              [&](weak w) {
                for (int i = 10; i < 50; ++i) weft::fork(task(i), weft::update(w));
                own = synced();
              },
              weft::weak_update(x));
        });
        CHECK(ran == failing);
        CHECK(left == (failing < 10 ? 1 + failing : 0));
        if (failing >= 10) CHECK(own == 1 + failing);
      }
}

TEST_CASE("an event outside that fails is older as well") {
  for (const unsigned workers : {1u, 2u, 3u}) {
    weft::runtime rt({.workers = workers, .inlining = false});
    weft::shared<int> x(0);
    for (int i = 0; i < 20; ++i) {
      std::thread outside;
      std::atomic<int> seen{0};
      CHECK(thrown_by(rt, [&] {
              weft::fork(
                  {.event = true},
                  [&](int&) {
                    outside = std::thread([done = weft::this_task::hold()]() mutable {
                      std::this_thread::yield();
                      done.fail(std::make_exception_ptr(9));
                    });
                  },
                  weft::update(x));
              weft::fork([&](weak) { seen = synced(); }, weft::weak_update(x));
              weft::fork([](int&) { throw 10; }, weft::update(x));
            }) == 9);
      CHECK(seen == -1);
      outside.join();
    }
  }
}

TEST_CASE("a weak body of a stopped run is cancelled, and so is the run") {
  for (const unsigned workers : {1u, 2u, 3u}) {
    weft::runtime rt({.workers = workers, .inlining = false});
    weft::shared<int> x(0);
    int seen = 0;
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork([](int&) { weft::this_task::request_stop(); }, weft::update(x));
      weft::fork([&](weak) { seen = synced(); }, weft::weak_update(x));
    }),
                    weft::cancelled);
    CHECK((seen == 0 || seen == -1));
  }
}

TEST_CASE("a task with weak rights only may be held open") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    weft::shared<int> x(0);
    std::thread outside;
    rt.run([&] {
      weft::fork(
          {.event = true},
          [&](weak) {
            outside = std::thread([done = weft::this_task::hold()]() mutable { done.complete(); });
          },
          weft::weak_update(x));
    });
    outside.join();
  }
}
