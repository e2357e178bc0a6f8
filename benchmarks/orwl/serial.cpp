// SPDX-License-Identifier: BSL-1.0
// The turns without locks, one after the other; and two kernel threads that hand them to each other.
#include "config.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace weft_bench {
namespace {

outcome run(int index, unsigned) {
  const long long n = problems[index].count;
  volatile long long value = 0;
  const stopwatch clock;
  for (long long i = 0; i < n; ++i) value = value + 1;
  return plain_outcome(value, n, clock.seconds());
}

outcome run_threads(int index, unsigned) {
  const long long n = problems[index].count;
  std::mutex door;
  std::condition_variable changed;
  long long value = 0;
  const stopwatch clock;
  const auto take_turns = [&](long long mine) {
    for (long long k = 0; k < n / 2; ++k) {
      std::unique_lock hold(door);
      changed.wait(hold, [&] { return value % 2 == mine; });
      ++value;
      hold.unlock();
      changed.notify_one();
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
  return plain_outcome(value, n, clock.seconds());
}

const registration entry("serial", run, fits_one_worker);
const registration threads("two threads", run_threads, fits_hand_off);

}  // namespace
}  // namespace weft_bench
