// SPDX-License-Identifier: BSL-1.0
// The rights a task may declare on an object, and which of them conflict.
#pragma once

#include <cstdint>

namespace weft::sched {

/// A right as the scheduler sees it. The modes reduce, commute and the weak ones take their place here.
enum class access_mode : std::uint8_t { read, write, update };

/// Whether a task with right `later` must wait for an unfinished earlier one with right `earlier`.
constexpr bool conflict(access_mode earlier, access_mode later) noexcept {
  return earlier != access_mode::read || later != access_mode::read;
}

}  // namespace weft::sched
