// SPDX-License-Identifier: BSL-1.0
// The system refuses a thread: the n-th pthread_create fails, for every n.
#include "fault/waiting.hpp"
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>

namespace {

std::atomic<long> until_failure{-1}, fired{0};  // negative: no failure is planned

long threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

}  // namespace

#ifndef WEFT_TEST_SANITIZED
extern "C" int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*f)(void*),
                              void* argument) noexcept {
  using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const function real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_create"));
  if (until_failure >= 0 && until_failure.fetch_sub(1) == 0) {
    ++fired;
    return EAGAIN;
  }
  return real(id, attributes, f, argument);
}
#endif

TEST_CASE("a refused thread is an exception, and leaves no thread behind") {
  if (weft_test::sanitized) return;
  {
    const weft::runtime first({.workers = 2});
  }
  // A thread that was joined may still be listed for a moment.
  const auto settles_at = [](long n) { return weft_test::wait_until([&] { return threads() == n; }); };
  const long before = 1;
  REQUIRE(settles_at(before));
  long visited = 0;
  for (long n = 0;; ++n) {
    INFO("thread " << n);
    fired = 0;
    until_failure = n;
    bool right = false, reported = false;
    try {
      weft::runtime rt({.workers = 4});
      right = weft_test::works(rt);
    } catch (const std::exception& e) {
      reported = true;
      if (n == 0) std::printf("the message: %s\n", e.what());
    }
    until_failure = -1;
    CHECK(right != reported);
    CHECK(reported == (fired > 0));
    CHECK(settles_at(before));
    if (fired == 0) break;
    ++visited;
  }
  CHECK(visited == 4);
}
