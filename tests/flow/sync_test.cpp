// SPDX-License-Identifier: BSL-1.0
// sync: waits for the children of the running task, as often as it is called, in every task, at any depth.
#include "flow/runtimes.hpp"
#include "support/record.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using weft_test::on_each_runtime;

namespace {

long sum_of_range(long from, long to) {
  if (to - from <= 4) {
    long s = 0;
    for (long i = from; i < to; ++i) s += i;
    return s;
  }
  const long middle = from + (to - from) / 2;
  auto left = weft::fork(sum_of_range, from, middle);
  const long right = sum_of_range(middle, to);
  weft::sync();
  return left.get() + right;
}

/// Every level waits for the one below.
int nest(int depth) {
  if (depth == 0) return 0;
  auto below = weft::fork(nest, depth - 1);
  weft::sync();
  return below.get() + 1;
}

}  // namespace

TEST_CASE("sync waits for all children and what they forked") {
  on_each_runtime([](weft::runtime& rt) {
    std::vector<int> seen;
    rt.run([&] {
      std::atomic<int> ended{0};
      const std::function<void(int)> tree = [&](int depth) {
        if (depth > 0)
          for (int i = 0; i < 3; ++i) weft::fork([&tree, depth] { tree(depth - 1); });
        ++ended;
      };
      for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 3; ++i) weft::fork([&] { tree(3); });
        weft::sync();
        seen.push_back(ended);
      }
    });
    CHECK(seen == std::vector<int>{120, 240, 360, 480, 600});
  });
}

TEST_CASE("sync without children, and twice, does nothing") {
  on_each_runtime([](weft::runtime& rt) {
    int n = 0;
    rt.run([&] {
      weft::sync();
      weft::sync();
      weft::fork([&] { ++n; });
      weft::sync();
      weft::sync();
      weft::fork([] { weft::sync(); });
      weft::sync();
      ++n;
    });
    CHECK(n == 2);
  });
}

TEST_CASE("a body forks and waits many times, its children do the same") {
  on_each_runtime([](weft::runtime& rt) {
    std::vector<int> log;  // the data flow orders its use
    std::vector<int> expected;
    rt.run([&] {
      auto l = weft::borrow(log);
      for (int i = 0; i < 10; ++i) {
        weft::fork(
            [i](weft::update<std::vector<int>> own) {
              for (int k = 0; k < 4; ++k) {
                weft::fork([i, k](std::vector<int>& v) { v.push_back(10 * i + k); }, own);
                if (k % 2 == 0) weft::sync();
              }
              weft::sync();
              own->push_back(-i);
            },
            l);
        if (i % 3 == 0) {
          weft::sync();
          log.push_back(1000 + i);
        }
      }
    });
    for (int i = 0; i < 10; ++i) {
      for (int k = 0; k < 4; ++k) expected.push_back(10 * i + k);
      expected.push_back(-i);
      if (i % 3 == 0) expected.push_back(1000 + i);
    }
    CHECK(log == expected);
  });
}

TEST_CASE("fork-join sums over ranges") {
  on_each_runtime([](weft::runtime& rt) { CHECK(rt.run(sum_of_range, 0L, 5000L) == 5000L * 4999 / 2); });
}

TEST_CASE("waits nest deeply") {
  for (const bool inlining : {true, false})
    for (const unsigned workers : {1u, 3u}) {
      INFO("workers " << workers << ", inlining " << inlining);
      weft::runtime rt({.workers = workers, .stack_size = 8 << 20, .inlining = inlining});
      CHECK(rt.run(nest, 1000) == 1000);
    }
}

TEST_CASE("with inlining a lone worker runs every task inside fork, in the order of the serial program") {
  weft::runtime rt(weft_test::alone_and_inlining());
  std::string log;
  rt.run([&] {
    log += '(';
    weft::fork([&] {
      log += 'a';
      weft::fork([&] { log += 'b'; });
      log += 'c';
    });
    log += 'd';
    weft::fork([&] { log += 'e'; });
    log += ')';
  });
  CHECK(log == "(abcde)");
  CHECK(rt.counters().deferred == 0);
  CHECK(rt.counters().inlined == 3);
}

TEST_CASE("without inlining every task is deferred until its parent has ended or waits") {
  weft::runtime rt(weft_test::alone_and_deferring());
  std::string log;
  rt.run([&] {
    log += '(';
    weft::fork([&] {
      log += 'a';
      weft::fork([&] { log += 'b'; });
      log += 'c';
    });
    log += 'd';
    weft::sync();
    weft::fork([&] { log += 'e'; });
    log += ')';
  });
  CHECK(log == "(dacb)e");
  CHECK(rt.counters().deferred == 3);
  CHECK(rt.counters().inlined == 0);
}

TEST_CASE("with thieves about both ways are used") {
  weft::runtime rt({.workers = 2, .surplus = 4});
  CHECK(rt.run(sum_of_range, 0L, 200'000L) == 200'000L * 199'999 / 2);
  CHECK(rt.counters().deferred > 0);
  // In a slow build a strand may leave each of those to thieves, for it does so at a rate. These are short,
  // and the thief has no time.
  rt.run([] {
    std::atomic<bool> done{false};
    CHECK(weft_test::fork_to_thief([&done] { weft_test::wait_until([&done] { return done.load(); }); }));
    weft::fork([&done] {
      for (int i = 0; i < 10'000; ++i) {
        weft::fork([] {});
        weft::sync();
      }
      done = true;
    });
    weft::sync();
  });
  CHECK(rt.counters().inlined > 0);
  weft::runtime never({.workers = 2, .inlining = false});
  CHECK(never.run(sum_of_range, 0L, 2000L) == 2000L * 1999 / 2);
  CHECK(never.counters().inlined == 0);
}

TEST_CASE("forks nest inside one another only as deep as the stack allows") {
  weft::runtime rt({.workers = 1, .stack_size = 128 * 1024});
  const std::function<void(int, int&)> down = [&](int depth, int& count) {
    ++count;
    if (depth > 0) weft::fork([&, depth] { down(depth - 1, count); });
  };
  int count = 0;
  rt.run([&] { down(20'000, count); });
  CHECK(count == 20'001);
  CHECK(rt.counters().inlined > 0);
  CHECK(rt.counters().deferred > 0);
}

TEST_CASE("a body that waits for a thief is suspended, and keeps its variables") {
  weft::runtime rt(weft_test::two_and_deferring());
  const auto suspensions = [&] { return rt.counters().suspensions; };
  int right = 0;
  constexpr int rounds = 50;
  for (int i = 0; i < rounds; ++i)
    rt.run([&] {
      std::vector<int> local(100, i);
      const double number = 1.0 / (i + 1);
      int stolen_result = 0;
      const auto before = suspensions();
      const bool stolen = weft_test::fork_to_thief([&, before] {
        weft_test::wait_until([&] { return suspensions() > before; });
        stolen_result = i;
      });
      weft::sync();
      right += stolen && stolen_result == i && local == std::vector<int>(100, i) && number == 1.0 / (i + 1);
    });
  CHECK(right == rounds);
  CHECK(suspensions() >= rounds);
}

TEST_CASE("after sync a body may continue on another worker, and forks go on as before") {
  weft::runtime rt(weft_test::two_and_deferring());
  int moved = 0, right = 0;
  constexpr int rounds = 50;
  for (int i = 0; i < rounds; ++i)
    rt.run([&] {
      const long before = weft_test::kernel_thread();
      weft_test::fork_to_thief([&] { weft_test::wait_for_waiter(rt); });
      weft::sync();
      moved += weft_test::kernel_thread() != before;
      weft::shared<long> x(1L);
      weft::fork([](long& v) { v = 2 * v + 1; }, weft::update(x));
      auto r = weft::fork(sum_of_range, 0L, 100L);
      weft::sync();
      right += x.get() == 3 && r.get() == 4950;
    });
  CHECK(moved == rounds);  // the thief that ended the child continues the parent
  CHECK(right == rounds);
}

TEST_CASE("many bodies wait at once") {
  weft::runtime rt({.workers = 3, .inlining = false});
  std::atomic<int> right{0}, begun{0};
  rt.run([&] {
    for (int i = 0; i < 300; ++i)
      weft::fork([&, i] {
        ++begun;
        if (i < 2) weft_test::wait_until([&] { return begun >= 2; });  // so one of them was stolen
        auto a = weft::fork([i] {
          std::this_thread::yield();
          return i;
        });
        auto b = weft::fork([i] { return 2 * i; });
        weft::sync();
        right += a.get() + b.get() == 3 * i;
      });
  });
  CHECK(right == 300);
  CHECK(rt.counters().steals > 0);
}

TEST_CASE("plain memory may be used by children up to sync") {
  on_each_runtime([](weft::runtime& rt) {
    long part[64] = {};
    long total = 0;
    rt.run([&] {
      for (std::size_t i = 0; i < 64; ++i) weft::fork([&part, i] { part[i] = static_cast<long>(i); });
      weft::sync();
      for (const long p : part) total += p;
    });
    CHECK(total == 2016);
  });
}
