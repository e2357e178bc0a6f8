// SPDX-License-Identifier: BSL-1.0
// What the library takes from its platform: atomics, threads, locks, time, and sleep.
#pragma once

#include <weft/base/config.hpp>

#if defined(WEFT_PLATFORM)

// Another platform, for tests that decide themselves who goes on: it defines the names below.
#include WEFT_PLATFORM

#else

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace weft::inline WEFT_ABI::base {

template <class T>
using atomic = std::atomic<T>;

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// A full fence.
WEFT_ALWAYS_INLINE void fence() noexcept { std::atomic_thread_fence(memory_order_seq_cst); }

using std::mutex;
using clock = std::chrono::steady_clock;

/// Tells the processor that this is a spin loop.
WEFT_ALWAYS_INLINE void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Gives the processor away.
inline void yield() noexcept { sched_yield(); }

/// Blocks while `word` holds `seen`; may return early.
inline void futex_wait(atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

/// The same, at most until `end`.
inline void futex_wait_until(atomic<std::uint32_t>& word, std::uint32_t seen,
                             clock::time_point end) noexcept {
  const std::chrono::nanoseconds left = end - clock::now();
  if (left.count() <= 0) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{seconds.count(), (left - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

/// Wakes at most `count` threads blocked on `word`.
inline void futex_wake(atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace weft::inline WEFT_ABI::base

#endif
