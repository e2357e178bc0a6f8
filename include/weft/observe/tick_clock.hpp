// SPDX-License-Identifier: BSL-1.0
// A clock that costs some nanoseconds to read, and what its ticks are in nanoseconds.
#pragma once

#include <weft/base/platform.hpp>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::observe {

namespace detail {

/// Whether the processor's time stamp counter goes on at one rate, whatever state the processor is in.
inline bool counter_is_steady() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x8000'0007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#else
  return false;
#endif
}

inline const bool use_counter = counter_is_steady();

}  // namespace detail

/// Ticks since some moment: of the time stamp counter where that is steady, else nanoseconds.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  if (detail::use_counter) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(base::clock::now().time_since_epoch()).count());
}

/// Both clocks, read at the same time: of some readings that which took least, since the thread may lose its
/// processor between one clock and the other.
struct moment {
  std::uint64_t at = 0;
  base::clock::time_point time;

  moment() noexcept {
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t before = ticks();
      const base::clock::time_point now = base::clock::now();
      const std::uint64_t took = ticks() - before;
      if (took < least) least = took, at = before + took / 2, time = now;
    }
  }
};

/// The rate between two moments. *Returns*: nanoseconds for a tick.
inline double nanoseconds_per_tick(const moment& from, const moment& to) noexcept {
  const auto passed = std::chrono::duration<double, std::nano>(to.time - from.time).count();
  return to.at > from.at && passed > 0 ? passed / static_cast<double>(to.at - from.at) : 1.0;
}

/// Ticks in which the calling thread has a processor. *Thread safety*: one thread.
class running_clock {
 public:
  /// Begins, with a rate that was measured.
  void start(double nanoseconds_for_tick) noexcept {
    rate_ = nanoseconds_for_tick;
    cost_ = UINT64_MAX;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t first = ticks(), second = ticks();
      cost_ = std::min(cost_, second - first);
    }
    reached_ = looked_ = ticks();
    run_ = processor_time_();
  }
  /// *Returns*: ticks since the last pass() or go_on(), without those in which the thread was not executed,
  /// and what reading the clock takes.
  /// *Cost*: two readings of the counter; a system call where that took long.
  std::uint64_t pass() noexcept {
    const std::uint64_t now = ticks(), passed = now - reached_;
    reached_ = now;
    if (passed < suspicious_) return passed > cost_ ? passed - cost_ : 0;
    const std::uint64_t away = away_(now);
    return passed > away ? passed - away : 0;
  }
  /// What has passed since the last pass() does not count.
  void go_on() noexcept {
    const std::uint64_t now = ticks();
    if (now - reached_ >= suspicious_) away_(now);
    reached_ = now;
  }

 private:
  static constexpr std::uint64_t suspicious_ = 50'000;  ///< ticks in which the thread may have been away

  /// *Returns*: ticks since the last call in which the thread was not executed.
  std::uint64_t away_(std::uint64_t now) noexcept {
    const std::uint64_t run = processor_time_();
    const auto ran = static_cast<std::uint64_t>(static_cast<double>(run - run_) / rate_);
    const std::uint64_t all = now - looked_;
    looked_ = now;
    run_ = run;
    return all > ran ? all - ran : 0;
  }
  static std::uint64_t processor_time_() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
  }

  double rate_ = 1;
  std::uint64_t cost_ = 0;  ///< of a reading
  std::uint64_t reached_ = 0;
  std::uint64_t looked_ = 0;  ///< when the time of the processor was read last,
  std::uint64_t run_ = 0;     ///< in nanoseconds
};

}  // namespace weft::inline WEFT_ABI::observe
