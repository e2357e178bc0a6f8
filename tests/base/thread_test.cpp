// SPDX-License-Identifier: BSL-1.0
// Kernel threads and processors: a thread that waits for the caller's processor is moved to another one.
#include "support/catch.hpp"

#include <weft/base/thread.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace base = weft::base;

namespace {

/// Where the kernel has put a thread; negative: it does not say.
int processor_of(int thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(in, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string word;
  for (int i = 3; i < 39; ++i) fields >> word;
  int processor = -1;
  fields >> processor;
  return processor;
}

cpu_set_t allowed(int thread) {
  cpu_set_t all;
  CPU_ZERO(&all);
  REQUIRE(sched_getaffinity(thread, sizeof all, &all) == 0);
  return all;
}
bool only_on(int thread, int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(processor), &one);
  return sched_setaffinity(thread, sizeof one, &one) == 0;
}

}  // namespace

TEST_CASE("a thread that waits for the caller's processor goes on at another one, and may come back") {
  const cpu_set_t before = allowed(0);
  if (CPU_COUNT(&before) < 2) {
    WARN("skipped: there is one processor");
    return;
  }
  std::atomic<int> number{0};
  std::atomic<bool> over{false};
  std::thread other([&] {
    number = base::kernel_thread();
    while (!over) {
    }
  });
  while (number == 0) std::this_thread::yield();
  const int here = base::current_processor();
  CHECK(only_on(0, here));
  int moved = 0, stayed = 0, fewer = 0;
  for (int trial = 0; trial < 2'000 && moved < 20; ++trial) {
    if (!only_on(number, here) || sched_setaffinity(number, sizeof before, &before) != 0) break;
    base::move_away(number, static_cast<std::size_t>(CPU_COUNT(&before)) + 1);  // so many there are not
    if (processor_of(number) != here) continue;  // the kernel has moved it, or this thread has waited for it
    base::move_away(number, 2);
    (processor_of(number) == here ? stayed : moved) += 1;
    const cpu_set_t after = allowed(number);
    fewer += !CPU_EQUAL(&before, &after);
  }
  over = true;
  other.join();
  CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
  std::printf("moved %d times, not %d times\n", moved, stayed);
  CHECK(moved > 10 * stayed);  // where the other processor is busy, the kernel may move it back at once
  CHECK(fewer == 0);
  base::move_away(number, 2);  // it has ended
}
