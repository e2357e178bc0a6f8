// SPDX-License-Identifier: BSL-1.0
// Bounded busy waits inside tasks, and the small computations that show that a runtime still works.
#pragma once

#include <weft/weft.hpp>

#include <chrono>
#include <thread>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TEST_THREAD_SANITIZER 1
#elif __has_feature(address_sanitizer)
#define WEFT_TEST_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TEST_THREAD_SANITIZER 1
#elif defined(__SANITIZE_ADDRESS__)
#define WEFT_TEST_ADDRESS_SANITIZER 1
#endif
#if defined(WEFT_TEST_THREAD_SANITIZER) || defined(WEFT_TEST_ADDRESS_SANITIZER)
#define WEFT_TEST_SANITIZED 1
#endif

namespace weft_test {

#ifdef WEFT_TEST_THREAD_SANITIZER
inline constexpr bool thread_sanitized = true;  // a child of a process with threads may not make any
#else
inline constexpr bool thread_sanitized = false;
#endif
#ifdef WEFT_TEST_SANITIZED
inline constexpr bool sanitized = true;  // the sanitizer's run-time library has calls of its own in the way
#else
inline constexpr bool sanitized = false;
#endif

/// Keeps the worker busy until the predicate holds; false if that takes too long.
template <class P>
bool wait_until(P&& holds, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Fibonacci numbers in fork-join form.
inline long fib(long n) {
  if (n < 2) return n;
  auto a = weft::fork(fib, n - 1);
  const long b = fib(n - 2);
  weft::sync();
  return a.get() + b;
}

inline void add(weft::read<long> a, weft::read<long> b, weft::write<long> r) { r = *a + *b; }

/// Fibonacci numbers in data-flow form.
inline void flow_fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(flow_fib, n - 1, a);
  weft::fork(flow_fib, n - 2, b);
  weft::fork(add, a, b, r);
}

/// Does the runtime compute what it should, in both forms?
inline bool works(weft::runtime& rt) {
  weft::shared<long> r;
  rt.run(flow_fib, 13L, r);
  return r.get() == 233 && rt.run(fib, 13L) == 233;
}

}  // namespace weft_test
