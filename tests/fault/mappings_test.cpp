// SPDX-License-Identifier: BSL-1.0
// The system refuses memory for stacks: the n-th mmap or mprotect fails, for every n.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/tracked.hpp"

#include <weft/weft.hpp>

#include <dlfcn.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>

namespace {

std::atomic<long> until_failure{0}, fired{0};
std::atomic<bool> armed{false}, persistent{false};

[[maybe_unused]] bool fails_now() {
  if (!armed) return false;
  const long left = until_failure.fetch_sub(1);
  if (left > 0 || (left < 0 && !persistent)) return false;
  ++fired;
  errno = ENOMEM;
  return true;
}

/// Bodies that wait for a stolen child, one inside the other: each needs a stack of its own.
void nest(int depth, weft_test::tracked t) {
  if (depth == 0) return;
  std::atomic<bool> started{false};
  weft::fork([&started, depth, t] {
    started = true;
    nest(depth - 1, t);
  });
  // A child that was dropped after a failure does not start.
  weft_test::wait_until([&] { return started.load() || fired > 0; }, std::chrono::milliseconds(500));
  weft::sync();
}

}  // namespace

#ifndef WEFT_TEST_SANITIZED
extern "C" void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  using function = void* (*)(void*, size_t, int, int, int, off_t);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "mmap"));
  return fails_now() ? MAP_FAILED : real(at, size, protection, flags, file, offset);
}
extern "C" int mprotect(void* at, size_t size, int protection) noexcept {
  using function = int (*)(void*, size_t, int);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "mprotect"));
  return fails_now() ? -1 : real(at, size, protection);
}
#endif

TEST_CASE("a refused stack is an exception, and the runtime stays usable") {
  if (weft_test::sanitized) return;
  using weft_test::tracked;
  for (const bool from_then_on : {false, true}) {
    long visited = 0;
    for (long n = 0;; ++n) {
      INFO("mapping " << n << (from_then_on ? " and all after it" : ""));
      tracked::reset();
      fired = 0;
      until_failure = n;
      persistent = from_then_on;
      bool right = false, reported = false;
      std::unique_ptr<weft::runtime> rt;
      armed = true;
      try {
        rt = std::make_unique<weft::runtime>(weft::runtime_options{.workers = 2, .inlining = false});
        rt->run([] { nest(6, tracked(1)); });
        right = true;
      } catch (const std::exception&) {
        reported = true;
      }
      armed = false;
      CHECK((right || reported));
      CHECK((right || fired > 0));
      CHECK(tracked::alive == 0);
      if (rt != nullptr) CHECK(weft_test::works(*rt));
      if (fired == 0) break;
      ++visited;
    }
    std::printf("%s: %ld mappings failed\n", from_then_on ? "persistent" : "once", visited);
    CHECK(visited >= 10);
  }
}
