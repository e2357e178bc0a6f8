// SPDX-License-Identifier: BSL-1.0
// Until when somebody waits.
#pragma once

#include <weft/base/platform.hpp>

#include <chrono>

namespace weft::inline WEFT_ABI::threads {

/// A time of the clock that never goes back, or none.
struct deadline {
  base::clock::time_point at = base::clock::time_point::max();

  bool exists() const noexcept { return at != base::clock::time_point::max(); }
  bool is_at_once() const noexcept { return at == base::clock::time_point::min(); }
};

/// For those who do not wait at all.
inline constexpr deadline at_once{base::clock::time_point::min()};

/// The time after which so much has passed; none if that is more than the clock can say.
template <class Rep, class Period>
deadline after(const std::chrono::duration<Rep, Period>& time) {
  const auto now = base::clock::now();
  if (time <= time.zero()) return {now};
  // Compared as floating point: the duration may be of any size and unit.
  using seconds = std::chrono::duration<double>;
  if (seconds(time) >= seconds(base::clock::time_point::max() - now) * 0.999) return {};
  return {now + std::chrono::ceil<base::clock::duration>(time)};
}

/// When another clock will show that time, if it is not set meanwhile.
template <class Clock, class Duration>
deadline at(const std::chrono::time_point<Clock, Duration>& time) {
  const auto now = Clock::now();
  return time > now ? after(time - now) : deadline{base::clock::now()};  // the difference may be too large
}

/// Calls `wait(deadline)`, which returns false when that is over, until it returns true or the time of
/// another clock is over, which may have been set meanwhile.
template <class Clock, class Duration, class Wait>
bool until_time(const std::chrono::time_point<Clock, Duration>& time, Wait wait) {
  for (;;) {
    if (wait(at(time))) return true;
    if (Clock::now() >= time) return false;
  }
}

}  // namespace weft::inline WEFT_ABI::threads
