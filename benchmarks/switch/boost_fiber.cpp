// SPDX-License-Identifier: BSL-1.0
// Boost.Fiber: a yield through its scheduler, and a fiber that waits for a result computed on another thread.
#include "config.hpp"

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/future.hpp>
#include <boost/fiber/operations.hpp>

#include <atomic>
#include <thread>

namespace weft_bench {
namespace {

outcome run_switches() {
  long n = 0;
  bool stop = false;
  boost::fibers::fiber other(boost::fibers::launch::dispatch, [&] {
    while (!stop) {
      ++n;
      boost::this_fiber::yield();
    }
  });
  n = 0;
  const stopwatch clock;
  for (long i = 0; i < switches / 2; ++i) boost::this_fiber::yield();
  const double seconds = clock.seconds();
  stop = true;
  const long counted = n;
  other.join();
  return plain_outcome(2 * counted, switches, seconds);
}

struct order {
  exchange shared;
  boost::fibers::promise<void> done;
};

outcome run_resumptions() {
  std::atomic<order*> next = nullptr;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop.load(std::memory_order_acquire)) {
      order* const o = next.exchange(nullptr, std::memory_order_acquire);  // pairs with the store below
      if (o == nullptr) continue;
      o->shared.child();
      o->done.set_value();
    }
  });
  resumptions all;
  while (!all.enough()) {
    order o;
    boost::fibers::future<void> done = o.done.get_future();
    next.store(&o, std::memory_order_release);  // pairs with the exchange above
    const bool taken = o.shared.taken();
    done.get();
    all.add(o.shared, taken, now());
  }
  stop.store(true, std::memory_order_release);
  other.join();
  return all.result();
}

outcome run(int index, unsigned) {
  return problems[index].what == change_stacks ? run_switches() : run_resumptions();
}

bool fits(int index, unsigned workers) { return (problems[index].what == change_stacks) == (workers == 1); }

const registration entry("boost-fiber", run, fits);

}  // namespace
}  // namespace weft_bench
