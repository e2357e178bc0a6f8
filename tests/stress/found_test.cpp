// SPDX-License-Identifier: BSL-1.0
// Faults that were found once, each by the shortest program that shows it.
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>

namespace {

long leaves = 0;

void level(int depth, int shift) {
  for (int i = 0; i < shift; ++i) weft::fork([a = i, b = 0L, c = 0L] { static_cast<void>(a + b + c); });
  weft::sync();
  weft::fork([] {});  // opens a frame, which begins a new block at one of the depths
  weft::sync();
  if (depth % 97 == 0) {
    for (int i = 0; i < 30000; ++i) weft::fork([] { ++leaves; });
    weft::sync();
  }
  if (depth != 0) weft::fork(level, depth - 1, shift);
}

void sum(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }
void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork(sum, a, b, r);
}

}  // namespace

TEST_CASE("a frame may begin a block of the closure arena") {
  leaves = 0;
  weft::runtime rt({.workers = 1, .inlining = false});
  for (int shift = 0; shift < 5; ++shift) rt.run([shift] { weft::fork(level, 3000, shift); });
  CHECK(leaves == 5L * 31 * 30000);
}

TEST_CASE("after a stop, sync does not return as if the dropped children had run") {
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    bool returned = false;
    CHECK_THROWS_AS(rt.run([&] {
      weft::this_task::request_stop();
      const auto r = weft::fork([] { return 42; });
      weft::sync();
      returned = true;
    }),
                    weft::cancelled);
    CHECK_FALSE(returned);
  }
}

TEST_CASE("a sleeping worker is told of tasks that become ready late") {
  weft::runtime rt({.workers = 2});
  int together = 0;
  constexpr int rounds = 5;
  for (int k = 0; k < rounds; ++k) {
    int x = 0;
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    rt.run([&] {
      using clock = std::chrono::steady_clock;
      const auto wait_until = [](auto end, auto done) {
        while (clock::now() < end && !done()) {
        }
      };
      for (int i = 0; i < 4000; ++i)
        weft::fork(
            [&wait_until](int& v) {
              wait_until(clock::now() + std::chrono::microseconds(5), [] { return false; });
              ++v;
            },
            weft::update(weft::borrow(x)));
      for (int i = 0; i < 2; ++i)
        weft::fork(
            [&](const int&) {
              ++inside;
              wait_until(clock::now() + std::chrono::seconds(5), [&] { return inside == 2; });
              if (inside == 2) met = true;
            },
            weft::read(weft::borrow(x)));
      weft::sync();
    });
    CHECK(x == 4000);
    together += met;
  }
  CHECK(together == rounds);
}

TEST_CASE("a worker that has served its thieves runs tasks inside fork again") {
  weft::runtime rt({.workers = 2});
  weft::shared<long> r;
  rt.run(fib, 30L, r);
  CHECK(r.get() == 832040);
  const weft::counters c = rt.counters();
  constexpr std::uint64_t tasks = 4'038'806;  // 2,692,537 calls, half of the others' number of sums
  CHECK(c.deferred < tasks / 4);
  CHECK(c.inlined > tasks / 2);
}
