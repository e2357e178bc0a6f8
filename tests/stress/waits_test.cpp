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
#include <shared_mutex>
#include <thread>
#include <vector>

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
    // A million turns and permits; in a long run more, but less than elsewhere: kernel threads are slow.
    const long n = weft_test::long_run() ? most / 20 : most * 9 / 20;
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

TEST_CASE("bodies that wait at condition variables pass items on, and all are told of the end") {
  on_all([](weft::runtime& rt, long n) {
    constexpr int pairs = 2;
    weft::mutex door;
    weft::condition_variable filled, emptied;
    std::vector<long> items;
    long taken = 0, sum = 0, told = 0;
    int producing = pairs;
    rt.run([&] {
      for (int me = 0; me < pairs; ++me) {
        weft::spawn([&, me] {
          weft_test::random random(weft_test::seed() + static_cast<std::uint64_t>(me));
          for (long i = me; i < n; i += pairs) {
            std::unique_lock hold(door);
            emptied.wait(hold, [&] { return items.size() < 2; });
            items.push_back(i);
            pause(random);
            filled.notify_one();
          }
          const std::lock_guard hold(door);
          if (--producing == 0) filled.notify_all();
        });
        weft::spawn([&] {
          for (;;) {
            std::unique_lock hold(door);
            filled.wait(hold, [&] { return !items.empty() || producing == 0; });
            if (items.empty()) {
              ++told;
              return;
            }
            sum += items.back();
            ++taken;
            items.pop_back();
            emptied.notify_one();
          }
        });
      }
    });
    CHECK(taken == n);
    CHECK(sum == n * (n - 1) / 2);
    CHECK(told == pairs);
    CHECK(rt.counters().suspensions > 0);
  });
}

TEST_CASE("readers and writers keep to themselves, whoever gives up") {
  on_all([](weft::runtime& rt, long n) {
    constexpr int bodies = 4;
    weft::shared_mutex door;
    std::atomic<long> wrong{0}, written{0}, read{0};
    std::atomic<int> readers{0};
    long value = 0, copy = 0;  // equal whenever no writer is inside
    rt.run([&] {
      for (int me = 0; me < bodies; ++me)
        weft::spawn([&, me] {
          weft_test::random random(weft_test::seed() + static_cast<std::uint64_t>(me));
          const auto write = [&] {
            wrong += readers != 0;
            ++value;
            pause(random);
            ++copy;
          };
          const auto look = [&] {
            ++readers;
            pause(random);
            wrong += value != copy;
            --readers;
          };
          long writes = 0, reads = 0;
          for (long i = 0; i < n; ++i) {
            const auto time = std::chrono::nanoseconds(random.below(2000));
            switch (random.below(32)) {
              case 0:
                if (const std::unique_lock hold(door, time); hold) write(), ++writes;
                break;
              case 1:
                if (const std::shared_lock hold(door, time); hold) look(), ++reads;
                break;
              case 2:
              case 3:
              case 4:
              case 5: {
                const std::unique_lock hold(door);
                write(), ++writes;
                if (i % 64 == 0) weft::this_task::sleep_for(std::chrono::nanoseconds(1));  // the others wait
                break;
              }
              default: {
                const std::shared_lock hold(door);
                look(), ++reads;
              }
            }
          }
          written += writes, read += reads;
        });
    });
    CHECK(wrong == 0);
    CHECK(value == written);
    CHECK(copy == written);
    CHECK(read > 0);
    CHECK(written > 0);
    CHECK(rt.counters().suspensions > 0);
    CHECK(door.try_lock());
    door.unlock();
  });
}

TEST_CASE("permits go to and fro, and none is lost or made") {
  on_all([](weft::runtime& rt, long most) {
    const long n = most / 2;
    constexpr int bodies = 3, permits = 2;
    weft::semaphore few(permits), there(0), back(1);
    std::atomic<long> wrong{0}, entered{0};
    std::atomic<int> inside{0};
    long forth = 0, got = 0;  // each touched by one body while the other one waits
    rt.run([&] {
      for (int me = 0; me < bodies; ++me)
        weft::spawn([&, me] {
          weft_test::random random(weft_test::seed() + static_cast<std::uint64_t>(me));
          for (long i = 0; i < n; ++i) {
            if (random.one_in(16)) {
              if (!few.try_acquire_for(std::chrono::nanoseconds(random.below(2000)))) continue;
            } else {
              few.acquire();
            }
            wrong += ++inside > permits;
            pause(random);
            --inside;
            ++entered;
            few.release();
          }
        });
      weft::spawn([&] {
        for (long i = 0; i < n; ++i) {
          back.acquire();
          wrong += forth != got;
          ++forth;
          there.release();
        }
      });
      weft::spawn([&] {
        for (long i = 0; i < n; ++i) {
          there.acquire();
          wrong += forth != ++got;
          back.release();
        }
      });
    });
    CHECK(wrong == 0);
    CHECK(forth == n);
    CHECK(got == n);
    CHECK(entered > bodies * n / 2);
    CHECK(rt.counters().suspensions > 0);
    for (int i = 0; i < permits; ++i) CHECK(few.try_acquire());
    CHECK_FALSE(few.try_acquire());
    CHECK(back.try_acquire());
    CHECK_FALSE(there.try_acquire());
  });
}

TEST_CASE("timed waits end among busy tasks, and never too early") {
  using clock = std::chrono::steady_clock;
  for (const unsigned workers : {1u, 2u, 4u}) {
    INFO("workers " << workers << ", seed " << weft_test::seed());
    weft::runtime rt({.workers = workers});
    const int busy_ones = 2 * static_cast<int>(workers) + 1;
    constexpr int bodies = 6;
    const int rounds = weft_test::long_run() ? 5000 : 300;
    weft::mutex door, held;
    weft::shared_mutex shut, read;
    weft::condition_variable never;
    weft::semaphore none(0);
    weft::latch closed(1);
    weft::condition<int> zero(0);
    weft::channel<int> full(1), empty(1);
    full.push(1);
    held.lock();
    shut.lock();
    read.lock_shared();
    std::atomic<long> early{0}, wrong{0}, ended{0}, pieces{0};
    std::atomic<int> waiting{bodies};

    // Each waits, at least so long, for what does not come; true if it has not.
    const auto is_one = [](int v) { return v == 1; };
    const auto refuse = [] { return false; };
    using time = std::chrono::nanoseconds;
    const auto with_lock = [&](const auto& wait) {
      std::unique_lock hold(door);
      return wait(hold) && hold.owns_lock();
    };
    const auto wait = [&](std::uint64_t how, time least) -> bool {
      const auto until = clock::now() + least;
      switch (how) {
        case 0:
          return !held.try_lock_for(least);
        case 1:
          return !held.try_lock_until(until);
        case 2:
          return !shut.try_lock_for(least);
        case 3:
          return !shut.try_lock_until(until);
        case 4:
          return !shut.try_lock_shared_for(least);
        case 5:
          return !shut.try_lock_shared_until(until);
        case 6:
          return !read.try_lock_for(least);
        case 7:
          return !none.try_acquire_for(least);
        case 8:
          return !none.try_acquire_until(until);
        case 9:
          return !closed.wait_for(least);
        case 10:
          return !closed.wait_until(until);
        case 11:
          return !zero.wait_for(least, is_one);
        case 12:
          return !zero.wait_until(until, is_one);
        case 13:
          return !full.push_for(2, least);
        case 14:
          return !empty.pop_for(least);
        case 15:
          return !weft::select_for(least, weft::on_send(full, 2), weft::on_receive(empty));
        case 16:
          return !weft::select_until(until, weft::on_send(full, 2), weft::on_receive(empty));
        case 17:
          return with_lock([&](auto& hold) { return !never.wait_for(hold, least, refuse); });
        case 18:
          return with_lock([&](auto& hold) { return !never.wait_until(hold, until, refuse); });
        case 19:
          return weft::this_task::sleep_for(least), true;
        default:
          return weft::this_task::sleep_until(until), true;
      }
    };
    constexpr std::uint64_t forms = 21;
    struct busy {
      std::atomic<int>& waiting;
      std::atomic<long>& pieces;
      void operator()() const {
        const auto end = clock::now() + std::chrono::microseconds(30);
        while (clock::now() < end) {
        }
        ++pieces;
        if (waiting > 0) weft::spawn(*this);
      }
    };
    rt.run([&] {
      for (int i = 0; i < busy_ones; ++i) weft::spawn(busy{waiting, pieces});
      for (int me = 0; me < bodies; ++me)
        weft::spawn([&, me] {
          weft_test::random random(weft_test::seed() + static_cast<std::uint64_t>(me));
          while (pieces <= busy_ones) weft::this_task::sleep_for(std::chrono::microseconds(10));
          for (int i = 0; i < rounds; ++i) {
            const time least(random.below(300'000));
            const auto start = clock::now();
            wrong += !wait(static_cast<std::uint64_t>(me * rounds + i) % forms, least);
            early += clock::now() - start < least;
            ++ended;
          }
          --waiting;
        });
    });
    CHECK(ended == bodies * rounds);
    CHECK(wrong == 0);
    CHECK(early == 0);
    CHECK(pieces > busy_ones);
    held.unlock();
    shut.unlock();
    read.unlock_shared();
  }
}
