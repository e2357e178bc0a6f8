// SPDX-License-Identifier: BSL-1.0
// Boost.Fiber: its mutex, condition variable, buffered channel and barrier. With two workers, each of the two
// fibers has a kernel thread of its own.
#include "config.hpp"

#include <boost/fiber/barrier.hpp>
#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/fixedsize_stack.hpp>
#include <boost/fiber/mutex.hpp>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace weft_bench {
namespace {

namespace fibers = boost::fibers;

outcome run_alone(int index) {
  const long long n = problems[index].count;
  fibers::mutex m;
  fibers::condition_variable changed;
  long long value = 0;
  const stopwatch clock;
  for (long long i = 1; i <= n; ++i) {
    {
      const std::lock_guard<fibers::mutex> hold(m);
      value = i;
      something();
    }
    if (is(index, set)) changed.notify_all();
  }
  return plain_outcome(value, n, clock.seconds());
}

/// Calls both, each in a fiber of its own.
template <class F, class G>
void both(unsigned workers, F f, G g) {
  if (workers == 1) {
    fibers::fiber other(f);
    g();
    other.join();
  } else {
    std::thread other(f);
    g();
    other.join();
  }
}

outcome run_ping_pong(int index, unsigned workers) {
  const long long n = problems[index].count;
  fibers::mutex m;
  fibers::condition_variable changed;
  long long turn = 0;
  const auto play = [&](int me) {
    for (long long i = 0; i < n / 2; ++i) {
      std::unique_lock<fibers::mutex> hold(m);
      changed.wait(hold, [&] { return turn % 2 == me; });
      ++turn;
      hold.unlock();
      changed.notify_one();
    }
  };
  const stopwatch clock;
  both(workers, [&] { play(1); }, [&] { play(0); });
  return plain_outcome(turn, n, clock.seconds());
}

outcome run_queue(int index, unsigned workers) {
  const long long n = problems[index].count;
  fibers::buffered_channel<long long> items(capacity);  // holds one item less
  long long sum = 0;
  const stopwatch clock;
  both(
      workers,
      [&] {
        for (long long i = 0; i < n; ++i) items.push(i);
        items.close();
      },
      [&] {
        for (const long long i : items) sum += i;
      });
  return plain_outcome(sum, n, clock.seconds());
}

outcome run_crowd(int index) {
  const long long n = problems[index].count;
  fibers::barrier all(static_cast<std::size_t>(n));
  long long passed = 0;
  std::vector<fibers::fiber> bodies;
  bodies.reserve(static_cast<std::size_t>(n));
  const stopwatch clock;
  for (long long i = 0; i < n; ++i)
    bodies.emplace_back(std::allocator_arg, fibers::fixedsize_stack(stack_bytes), [&] {
      all.wait();
      ++passed;
    });
  for (fibers::fiber& b : bodies) b.join();
  return plain_outcome(passed, n, clock.seconds());
}

outcome run(int index, unsigned workers) {
  switch (problems[index].what) {
    case lock:
    case set:
      return run_alone(index);
    case ping_pong:
      return run_ping_pong(index, workers);
    case queue:
      return run_queue(index, workers);
    case crowd:
      break;
  }
  return run_crowd(index);
}

bool fits(int index, unsigned workers) { return workers == 1 || is(index, ping_pong) || is(index, queue); }

const registration entry("boost-fiber", run, fits);

}  // namespace
}  // namespace weft_bench
