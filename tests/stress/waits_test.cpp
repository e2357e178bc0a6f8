// SPDX-License-Identifier: BSL-1.0
// Bodies and kernel threads wait for each other very often: no wake-up is lost.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace {

long cycles() {
  return (weft_test::long_run() ? 100'000'000 : 1'500'000) / static_cast<long>(weft_test::scale());
}

/// Calls f on runtimes with fewer workers than processors, as many, and more, which do and do not sleep at
/// once.
template <class F>
void on_all(F f) {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const auto spin : {std::chrono::microseconds(0), std::chrono::microseconds(100)}) {
      INFO("workers " << workers << ", spin " << spin.count());
      weft::runtime rt({.workers = workers, .spin = spin});
      f(rt, cycles() / 6);
    }
}

/// Sometimes long enough for others to sleep, or to take what a worker has kept.
void pause(weft_test::random& random) {
  if (random.below(1000) != 0) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(20));
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("bodies take turns, and what they set is seen") {
  on_all([](weft::runtime& rt, long n) {
    constexpr int players = 3;
    weft::condition<long> turn(0);
    std::atomic<long> wrong{0};
    long passed = 0;
    rt.run([&] {
      for (int me = 0; me < players; ++me)
        weft::spawn([&, me] {
          weft_test::random random(static_cast<std::uint64_t>(me) + 1);
          for (long i = me; i < n; i += players) {
            turn.wait_equal(i);
            wrong += passed++ != i;
            pause(random);
            turn.set(i + 1);
          }
        });
    });
    CHECK(passed == n);
    CHECK(wrong == 0);
  });
}

TEST_CASE("bodies lock, meet, and pass items on") {
  on_all([](weft::runtime& rt, long n) {
    constexpr int bodies = 3;
    weft::mutex door;
    weft::barrier all(bodies);
    weft::channel<long> forth(2), back(1);
    long counted = 0, sum = 0, answers = 0;
    rt.run([&] {
      for (int me = 0; me < bodies; ++me)
        weft::spawn([&, me] {
          weft_test::random random(static_cast<std::uint64_t>(me) + 1);
          for (long i = 0; i < n; ++i) {
            {
              const std::lock_guard hold(door);
              ++counted;
              pause(random);
            }
            if (i % 4 == 0) all.arrive_and_wait();
          }
        });
      weft::spawn([&] {
        for (long i = 0; i < n; ++i)
          weft::select(weft::on_send(forth, i), weft::on_receive(back, [&](auto) { ++answers, --i; }));
        forth.close();
        while (back.pop()) ++answers;
      });
      weft::spawn([&] {
        while (const auto v = forth.pop()) {
          sum += *v;
          if (*v % 16 == 0) back.push(0);
        }
        back.close();
      });
    });
    CHECK(counted == bodies * n);
    CHECK(sum == n * (n - 1) / 2);
    CHECK(answers == (n + 15) / 16);
  });
}

TEST_CASE("bodies and kernel threads outside tasks wait for each other") {
  on_all([](weft::runtime& rt, long most) {
    const long n = most / 20;
    weft::condition<long> turn(0);
    weft::semaphore permits(0);
    long got = 0;
    std::thread outside([&] {
      for (long i = 1; i < n; i += 2) {
        turn.wait_equal(i);
        turn.set(i + 1);
        permits.release();
      }
    });
    rt.run([&] {
      weft::spawn([&] {
        for (long i = 0; i < n; i += 2) {
          turn.wait_equal(i);
          turn.set(i + 1);
        }
      });
      weft::spawn([&] {
        for (long i = 1; i < n; i += 2) permits.acquire(), ++got;
      });
    });
    outside.join();
    CHECK(got == n / 2);
  });
}
