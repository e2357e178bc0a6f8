// SPDX-License-Identifier: BSL-1.0
// A clock that costs some nanoseconds to read, and what its ticks are in nanoseconds.
#pragma once

#include <weft/base/platform.hpp>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <time.h>

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

/// The wall clock at a moment, so that what several processes have noted can be put together; as `moment`,
/// of some readings that which took least.
/// *Returns*: nanoseconds since 1970. *Cost*: reads both clocks eight times.
inline std::uint64_t wall_clock_at(const moment& at) noexcept {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  base::clock::duration least = base::clock::duration::max();
  nanoseconds found{};
  for (int i = 0; i < 8; ++i) {
    const base::clock::time_point before = base::clock::now();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const base::clock::duration took = base::clock::now() - before;
    if (took >= least) continue;
    least = took;
    found = duration_cast<nanoseconds>(wall) - duration_cast<nanoseconds>(before - at.time + took / 2);
  }
  return static_cast<std::uint64_t>(found.count());
}

/// The rate between two moments. *Returns*: nanoseconds for a tick.
inline double nanoseconds_per_tick(const moment& from, const moment& to) noexcept {
  const auto passed = std::chrono::duration<double, std::nano>(to.time - from.time).count();
  return to.at > from.at && passed > 0 ? passed / static_cast<double>(to.at - from.at) : 1.0;
}

}  // namespace weft::inline WEFT_ABI::observe
