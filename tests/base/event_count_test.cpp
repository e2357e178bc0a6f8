// SPDX-License-Identifier: BSL-1.0
// Sleeping: no notification is lost, whoever comes first; and the end of a run wakes its caller.
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/base/event_count.hpp>
#include <weft/task/run_state.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

using weft::base::event_count;

namespace {

int rounds() { return 100'000 / static_cast<int>(weft_test::scale()); }

/// A number that one thread raises and another waits for, as a worker waits for work.
struct channel {
  weft::base::atomic<int> value{0};
  event_count bell;

  void raise(int v) {
    weft::base::owner_store(value, v);  // pairs with the heavy fence in prepare
    if (bell.any_waiting()) bell.notify_one();
  }
  /// Returns how often it slept.
  int wait_for(int v) {
    int slept = 0;
    const auto holds = [&] { return value.load(std::memory_order_acquire) >= v; };  // pairs with raise
    while (!holds()) {
      const std::uint32_t key = bell.prepare();
      if (holds()) {
        bell.cancel();
        break;
      }
      bell.wait(key);
      ++slept;
    }
    return slept;
  }
};

}  // namespace

TEST_CASE("nobody waits before, after, and without a notification") {
  event_count e;
  CHECK_FALSE(e.any_waiting());
  e.notify_one();
  e.notify_all();
  e.prepare();
  CHECK(e.any_waiting());
  e.cancel();
  CHECK_FALSE(e.any_waiting());
}

TEST_CASE("a notification after prepare ends the wait, also if it comes before it") {
  event_count e;
  const std::uint32_t key = e.prepare();
  e.notify_one();
  e.wait(key);
  CHECK_FALSE(e.any_waiting());
  const std::uint32_t one = e.prepare(), two = e.prepare();
  e.notify_one();  // both have only prepared
  e.wait(one);
  CHECK(e.any_waiting());
  e.wait(two);
  CHECK_FALSE(e.any_waiting());
}

TEST_CASE("two threads that wait for each other lose no notification") {
  channel to, from;
  int slept_there = 0, slept_here = 0;
  const int n = rounds();
  std::thread other([&] {
    for (int i = 1; i <= n; ++i) {
      slept_there += to.wait_for(i);
      from.raise(i);
    }
  });
  for (int i = 1; i <= n; ++i) {
    to.raise(i);
    slept_here += from.wait_for(i);
  }
  other.join();
  CHECK(slept_there + slept_here > 0);
  CHECK_FALSE(to.bell.any_waiting());
  CHECK_FALSE(from.bell.any_waiting());
}

TEST_CASE("notify_all wakes every sleeper") {
  constexpr int sleepers = 4;
  event_count e;
  std::atomic<int> target{0}, arrived{0}, slept{0};
  std::vector<std::thread> threads;
  const int n = 500;
  for (int t = 0; t < sleepers; ++t)
    threads.emplace_back([&] {
      for (int i = 1; i <= n; ++i) {
        while (target < i) {
          const std::uint32_t key = e.prepare();
          if (target >= i) {
            e.cancel();
            break;
          }
          e.wait(key);
          ++slept;
        }
        ++arrived;
      }
    });
  for (int i = 1; i <= n; ++i) {
    target = i;
    if (e.any_waiting()) e.notify_all();
    while (arrived < i * sleepers) std::this_thread::yield();
  }
  for (std::thread& t : threads) t.join();
  CHECK(slept > 0);
  CHECK_FALSE(e.any_waiting());
}

TEST_CASE("the end of a run wakes the thread that waits for it, or is there already") {
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    auto run = std::make_unique<weft::sched::run_state>();
    int result = 0;
    std::thread worker([&] {
      if (i % 2 == 0) std::this_thread::yield();
      result = i + 1;
      run->error = std::make_exception_ptr(i);
      if (run->finished.set() != nullptr) std::terminate();
    });
    if (i % 3 == 0) std::this_thread::yield();
    run->finished.block();
    wrong += result != i + 1 || !run->error;
    worker.join();  // finish may still touch the word that it wakes
  }
  CHECK(wrong == 0);
}

TEST_CASE("the end of a run hands over the strand that waits for it") {
  alignas(64) static char no_strand[64];
  auto* const caller = reinterpret_cast<weft::sched::strand*>(no_strand);
  weft::sched::run_state early, late;
  early.finished.waiter = late.finished.waiter = caller;
  CHECK(early.finished.set() == nullptr);  // the caller has not gone to wait
  CHECK(early.finished.is_on());
  late.finished.state = weft::sched::signal::awaited;
  CHECK(late.finished.set() == caller);
  CHECK(late.finished.is_on());
}

TEST_CASE("a wait with an end ends with it, or with a notification") {
  using clock = std::chrono::steady_clock;
  event_count e;
  const auto end = clock::now() + std::chrono::milliseconds(2);
  e.wait_until(e.prepare(), end);
  CHECK(clock::now() >= end);
  CHECK_FALSE(e.any_waiting());
  e.wait_until(e.prepare(), clock::now() - std::chrono::hours(1));
  CHECK_FALSE(e.any_waiting());
  const std::uint32_t key = e.prepare();
  e.notify_one();
  e.wait_until(key, clock::time_point::max());
  CHECK_FALSE(e.any_waiting());
  std::thread other([&e] {
    while (!e.any_waiting()) std::this_thread::yield();
    e.notify_one();
  });
  e.wait_until(e.prepare(), clock::now() + std::chrono::hours(1));
  other.join();
  CHECK_FALSE(e.any_waiting());
}
