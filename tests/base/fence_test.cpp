// SPDX-License-Identifier: BSL-1.0
// The asymmetric fence orders two threads of which one pays nothing, with membarrier and where the kernel
// refuses it.
#include "support/catch.hpp"

#include <weft/base/atomic.hpp>
#include <weft/base/lock.hpp>

#include <dlfcn.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <thread>

namespace base = weft::base;

#if defined(WEFT_TEST_NO_MEMBARRIER)
namespace {
int refused = 0;  // while the program starts, by one thread
}

// In place of the C library's: the kernel of a container that filters system calls.
extern "C" long syscall(long number, ...) noexcept {
  using function = long (*)(long, ...);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "syscall"));
  if (number == SYS_membarrier) {
    ++refused;
    errno = ENOSYS;
    return -1;
  }
  std::va_list values;
  va_start(values, number);
  long argument[6];  // those that the caller did not give are not looked at
  for (long& one : argument) one = va_arg(values, long);
  va_end(values);
  return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
#endif

TEST_CASE("one of the two sees the other: an owner that stores and loads, a thief that fences between") {
#if defined(WEFT_TEST_NO_MEMBARRIER) && WEFT_ASYMMETRIC
  CHECK(refused == 1);
#endif
  REQUIRE(base::heavy_fence_works());
  constexpr int rounds = 3'000;
  base::atomic<int> of_owner{0}, of_thief{0};
  std::atomic<int> turn{0}, ended{0};  // the round that may begin, and how many have ended it
  int owner_saw = 0, thief_saw = 0, neither = 0;
  const auto meet = [&](int round) {
    for (base::backoff wait; turn.load(std::memory_order_acquire) != round;) wait.wait();
  };
  std::thread owner([&] {
    for (int round = 1; round <= rounds; ++round) {
      meet(round);
      base::owner_store(of_owner, round);
      owner_saw = base::owner_load(of_thief) == round;
      ended.store(round, std::memory_order_release);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    turn.store(round, std::memory_order_release);
    of_thief.store(round, std::memory_order_relaxed);
    base::heavy_fence();
    thief_saw = of_owner.load(std::memory_order_relaxed) == round;
    for (base::backoff wait; ended.load(std::memory_order_acquire) != round;) wait.wait();
    neither += !owner_saw && !thief_saw;
  }
  owner.join();
  CHECK(neither == 0);
}
