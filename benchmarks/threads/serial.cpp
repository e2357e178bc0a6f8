// SPDX-License-Identifier: BSL-1.0
// The standard library: mutex, condition variable, kernel threads. For the crowd only counts: a million
// kernel threads are not to be had.
#include "config.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace weft_bench {
namespace {

outcome run_alone(int index) {
  const long long n = problems[index].count;
  std::mutex m;
  std::condition_variable changed;
  long long value = 0;
  const stopwatch clock;
  if (is(index, lock)) {
    for (long long i = 0; i < n; ++i) {
      m.lock();
      ++value;
      something();
      m.unlock();
    }
  } else {
    for (long long i = 1; i <= n; ++i) {
      {
        const std::lock_guard<std::mutex> hold(m);
        value = i;
      }
      changed.notify_all();
    }
  }
  return plain_outcome(value, n, clock.seconds());
}

outcome run_ping_pong(int index) {
  const long long n = problems[index].count;
  std::mutex m;
  std::condition_variable changed;
  long long turn = 0;
  const auto play = [&](int me) {
    for (long long i = 0; i < n / 2; ++i) {
      std::unique_lock<std::mutex> hold(m);
      changed.wait(hold, [&] { return turn % 2 == me; });
      ++turn;
      hold.unlock();
      changed.notify_one();
    }
  };
  const stopwatch clock;
  std::thread other(play, 1);
  play(0);
  other.join();
  return plain_outcome(turn, n, clock.seconds());
}

outcome run_queue(int index) {
  const long long n = problems[index].count;
  std::mutex m;
  std::condition_variable filled, emptied;
  std::deque<long long> items;
  long long sum = 0;
  const stopwatch clock;
  std::thread producer([&] {
    for (long long i = 0; i < n; ++i) {
      std::unique_lock<std::mutex> hold(m);
      emptied.wait(hold, [&] { return items.size() < capacity; });
      items.push_back(i);
      hold.unlock();
      filled.notify_one();
    }
  });
  for (long long i = 0; i < n; ++i) {
    std::unique_lock<std::mutex> hold(m);
    filled.wait(hold, [&] { return !items.empty(); });
    sum += items.front();
    items.pop_front();
    hold.unlock();
    emptied.notify_one();
  }
  producer.join();
  return plain_outcome(sum, n, clock.seconds());
}

outcome run(int index, unsigned) {
  switch (problems[index].what) {
    case lock:
    case set:
      return run_alone(index);
    case ping_pong:
      return run_ping_pong(index);
    case queue:
      return run_queue(index);
    case crowd:
      break;
  }
  long long counted = 0;
  const stopwatch clock;
  for (long long i = 0; i < problems[index].count; ++i, something()) ++counted;
  return plain_outcome(counted, problems[index].count, clock.seconds());
}

bool fits(int index, unsigned workers) { return workers == 1 || is(index, ping_pong) || is(index, queue); }

const registration entry("std", run, fits);

}  // namespace
}  // namespace weft_bench
