// SPDX-License-Identifier: BSL-1.0
// Scratch objects of workers: made once for each, never shared by bodies that run at the same time, combined.
#include "flow/runtimes.hpp"
#include "support/child.hpp"
#include "support/tracked.hpp"

#include <weft/worker_local.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft::worker_local;
using weft_test::contains;
using weft_test::fork_to_thief;
using weft_test::on_each_runtime;
using weft_test::tracked;

TEST_CASE("each worker has one object, and together they have seen every task once") {
  on_each_runtime([](weft::runtime& rt) {
    worker_local<std::vector<int>> seen;
    rt.run([&] {
      for (int i = 0; i < 1000; ++i) weft::fork([&, i] { seen.local().push_back(i); });
    });
    CHECK(seen.size() >= 1);
    CHECK(seen.size() <= rt.workers());
    std::vector<int> all = seen.combine([](std::vector<int> a, const std::vector<int>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    });
    std::sort(all.begin(), all.end());
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(all == expected);
  });
}

TEST_CASE("bodies that run at the same time have different objects, apart from each other in memory") {
  weft::runtime rt({.workers = 2});
  worker_local<char> object;
  const char *mine = nullptr, *of_thief = nullptr;
  bool found = false;
  rt.run([&] {
    mine = &object.local();
    found = fork_to_thief([&] { of_thief = &object.local(); });
  });
  REQUIRE(found);
  CHECK(object.size() == 2);
  const auto distance = reinterpret_cast<std::intptr_t>(mine) - reinterpret_cast<std::intptr_t>(of_thief);
  CHECK((distance >= 64 || distance <= -64));
  CHECK(reinterpret_cast<std::uintptr_t>(mine) % 64 == 0);
}

TEST_CASE("a body finds its object again, and so does the next one on the worker") {
  weft::runtime rt({.workers = 1});
  worker_local<int> count([] { return 100; });
  rt.run([&] {
    for (int i = 0; i < 10; ++i) weft::fork([&] { ++count.local(); });
    weft::sync();
    ++count.local();
  });
  rt.run([&] { ++count.local(); });
  CHECK(count.size() == 1);
  CHECK(*count.begin() == 112);
}

TEST_CASE("threads that are no workers have an object each") {
  worker_local<int> sum;
  sum.local() = 1;
  int* of_first = nullptr;
  for (int i = 0; i < 3; ++i)  // one after the other: their identifiers may be the same
    std::thread([&] {
      sum.local() += 10;
      sum.local() += 10;
      if (i == 0) of_first = &sum.local();
    }).join();
  CHECK(&sum.local() != of_first);
  weft::runtime rt({.workers = 1});
  rt.run([&] { sum.local() = 100; });
  CHECK(sum.size() == 5);
  CHECK(sum.combine(std::plus<>()) == 161);
}

TEST_CASE("workers of different runtimes have different objects, and pass them on") {
  worker_local<int> object;
  {
    weft::runtime a({.workers = 1}), b({.workers = 1});
    a.run([&] {
      int& outer = object.local();
      b.run([&] { CHECK(&object.local() != &outer); });
    });
    CHECK(object.size() == 2);
  }
  for (int i = 0; i < 5; ++i) weft::runtime({.workers = 1}).run([&] { ++object.local(); });
  CHECK(object.size() == 2);
}

TEST_CASE("without objects the combination is a new one; with one it is that; clear begins anew") {
  tracked::reset();
  {
    worker_local<int> sum([] { return 7; });
    CHECK(sum.combine(std::plus<>()) == 7);
    CHECK(sum.empty());
    sum.local() = 3;
    CHECK(sum.combine(std::plus<>()) == 3);
    worker_local<tracked> objects([] { return tracked(1); });
    objects.local();
    weft::runtime rt({.workers = 2});
    rt.run([&] {
      for (int i = 0; i < 100; ++i) weft::fork([&] { objects.local().value = 2; });
    });
    CHECK(tracked::alive == static_cast<long>(objects.size()));
    CHECK(objects.size() >= 2);
    objects.clear();
    CHECK(objects.empty());
    CHECK(objects.begin() == objects.end());
    CHECK(tracked::alive == 0);
    CHECK(rt.run([&] { return objects.local().value; }) == 1);
    CHECK(objects.size() == 1);
  }
  CHECK(tracked::alive == 0);
}

TEST_CASE("objects may be neither copied nor moved, nor begin with nothing") {
  struct fixed {
    int value;
    explicit fixed(int v) : value(v) {}
    fixed(const fixed&) = delete;
    fixed& operator=(const fixed&) = delete;
  };
  worker_local<fixed> object([] { return fixed(5); });
  CHECK(object.local().value == 5);
  worker_local<std::unique_ptr<int>> pointer;
  pointer.local() = std::make_unique<int>(6);
  for (const std::unique_ptr<int>& p : std::as_const(pointer)) CHECK(*p == 6);
  for (fixed& f : object) f.value = 8;
  CHECK(object.begin()->value == 8);
  struct alignas(256) wide {
    int value = 1;
  };
  worker_local<wide> aligned;
  CHECK(reinterpret_cast<std::uintptr_t>(&aligned.local()) % 256 == 0);
}

TEST_CASE("what making an object throws reaches the body, and the next call tries again") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> calls{0};
    worker_local<int> object([&] {
      if (calls++ == 0) throw std::runtime_error("not yet");
      return 1;
    });
    CHECK_THROWS_AS(rt.run([&] { object.local() = 2; }), std::runtime_error);
    CHECK(object.empty());
    CHECK(rt.run([&] { return object.local(); }) == 1);
  });
}

TEST_CASE("an object that is made by tasks is the worker's all the same") {
  on_each_runtime([](weft::runtime& rt) {
    worker_local<int> object([] {
      std::atomic<int> sum{0};
      for (int i = 0; i < 10; ++i) weft::fork([&] { ++sum; });
      weft::sync();  // and may go on on another worker
      return sum.load();
    });
    std::atomic<int> wrong{0};
    rt.run([&] {
      for (int i = 0; i < 50; ++i) weft::fork([&] { wrong += object.local() != 10; });
    });
    CHECK(wrong == 0);
    CHECK(object.size() <= rt.workers());
  });
}

TEST_CASE("use hands over the object, and returns what the function does") {
  on_each_runtime([](weft::runtime& rt) {
    worker_local<long> sum;
    rt.run([&] {
      for (int i = 1; i <= 1000; ++i) weft::fork([&, i] { sum.use([&](long& s) { s += i; }); });
    });
    CHECK(sum.combine(std::plus<>()) == 500500);
    CHECK(rt.run([&] { return sum.use([](long&) { return std::string("x"); }); }) == "x");
    CHECK_THROWS_AS(rt.run([&] { sum.use([](long&) { throw std::logic_error("y"); }); }), std::logic_error);
    CHECK_NOTHROW(rt.run([&] { sum.use([](long& s) { s = 0; }); }));
  });
}

#if WEFT_CHECKED
TEST_CASE("checked builds find bodies that wait or fork while they use the object") {
  const auto waits = weft_test::run_in_child([] {
    weft::runtime rt({.workers = 1});
    worker_local<int> object;
    rt.run([&] { object.use([](int&) { weft::sync(); }); });
  });
  CHECK(waits.aborted());
  CHECK_THAT(waits.output, contains("calls sync() while 'a worker_local' is held"));
  const auto forks = weft_test::run_in_child([] {
    weft::runtime rt({.workers = 1});
    worker_local<int> object;
    rt.run([&] { object.use([&](int&) { weft::fork([&] { object.use([](int&) {}); }); }); });
  });
  CHECK(forks.aborted());
  CHECK_THAT(forks.output, contains("a worker_local object is used by two bodies at once"));
}
#endif
