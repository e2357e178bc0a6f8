// SPDX-License-Identifier: BSL-1.0
// The kernel's own share: a thread that waits on a condition variable and is notified.
#include "config.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace weft_bench {
namespace {

struct mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  int posted = 0;
  bool stop = false;
  std::atomic<int> seen = 0;
  double woken = 0;

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!stop) {
      changed.wait(lock, [&] { return stop || posted != seen.load(std::memory_order_relaxed); });
      woken = now();
      seen.store(posted, std::memory_order_release);  // pairs with the acquire in run()
    }
  }
  void post(int number) {
    const std::lock_guard<std::mutex> lock(mutex);
    posted = number;
    changed.notify_one();
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex);
    stop = true;
    changed.notify_one();
  }
};

outcome run(int index, unsigned) {
  mailbox box;
  std::thread server([&] { box.serve(); });
  outcome o{};
  if (problems[index].what == idle) {
    o = idle_outcome();
  } else {
    latencies all;
    for (int i = 1; i <= trials; ++i) {
      pause_for(sleep_before);
      const double posted = now();
      box.post(i);
      while (box.seen.load(std::memory_order_acquire) != i) {
      }
      all.add(box.woken - posted);
    }
    o = all.median();
  }
  box.end();
  server.join();
  return o;
}

const registration entry("condition-variable", run, fits_one_worker);

}  // namespace
}  // namespace weft_bench
