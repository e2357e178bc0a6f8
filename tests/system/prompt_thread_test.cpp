// SPDX-License-Identifier: BSL-1.0
// Threads that ask for short slices, and how processes share processors.
#include "support/catch.hpp"

#include <weft/system/processor_share.hpp>
#include <weft/system/prompt_thread.hpp>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace base = weft::base;

namespace {

/// Of the calling thread: the attributes of its scheduling, as the kernel tells them.
struct attributes {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice = 0, deadline = 0, period = 0;

  static attributes now() {
    attributes a;
    syscall(SYS_sched_getattr, 0, &a, sizeof a, 0);
    return a;
  }
  bool operator==(const attributes&) const = default;
};

}  // namespace

TEST_CASE("a prompt thread has short slices and exact timers, and then its own again", "[base]") {
  std::thread([] {
    REQUIRE(prctl(PR_SET_TIMERSLACK, 70'000, 0, 0, 0) == 0);
    const attributes before = attributes::now();
    {
      const base::prompt_thread prompt;
      CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 1);
      const attributes now = attributes::now();
      CHECK(now.policy == before.policy);
      CHECK(now.nice == before.nice);
      if (before.slice != 0) CHECK(now.slice == 100'000);  // else the kernel has none that can be asked for
      const base::prompt_thread nested;
      CHECK(attributes::now() == now);
    }
    CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 70'000);
    CHECK(attributes::now() == before);
  }).join();
}

TEST_CASE("threads of another policy keep it", "[base]") {
  std::thread([] {
    sched_param none{};
    REQUIRE(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
    const attributes before = attributes::now();
    const base::prompt_thread prompt;
    CHECK(attributes::now() == before);
  }).join();
}

TEST_CASE("processors that several processes may use are shared evenly", "[base]") {
  CHECK(base::processor_share({{0, 1}}, 0) == 2);
  CHECK(base::processor_share({{0, 1}, {0, 1}}, 1) == 1);
  CHECK(base::processor_share({{0}, {1}}, 1) == 1);  // bound: all that each may use is its own
  CHECK(base::processor_share({{0, 1, 2, 3}, {4, 5, 6, 7}}, 1) == 4);
  CHECK(base::processor_share({{0, 1}, {1}}, 0) == 1.5);
  CHECK(base::processor_share({{0, 1}, {1}}, 1) == 0.5);
  CHECK(base::processor_share({{}, {1}}, 0) == 0);
  CHECK(base::processor_share({{4000}, {0}}, 0) == 1);
}
