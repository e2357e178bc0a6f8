// SPDX-License-Identifier: BSL-1.0
// Which forks leave their tasks to thieves: those near the root of a recursion, and not too many in a time.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/task/granularity.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

class exposure {
 public:
  static constexpr std::uint32_t any = UINT32_MAX / 2;

  void begin(std::uintptr_t address, std::uint32_t worth) noexcept {
    origin_ = address;
    worth_ = worth;
    next_ = base::clock::now() - granularity::exposed * granularity::exposed_burst;
  }
  /// A task that was forked at this depth begins where the stack is at this address.
  void begin_task(std::uintptr_t address, std::uint16_t depth) noexcept { origin_ = address + depth * unit; }
  std::uintptr_t origin() const noexcept { return origin_; }
  void set_origin(std::uintptr_t o) noexcept { origin_ = o; }
  std::uint32_t depth_of(std::uintptr_t address) const noexcept {
    return address < origin_ ? static_cast<std::uint32_t>((origin_ - address) / unit) : 0;
  }
  std::uint16_t stored_depth(std::uintptr_t address) const noexcept {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(depth_of(address), UINT16_MAX));
  }
  bool small(std::uint32_t depth) const noexcept { return depth > worth_; }
  std::uint32_t worth_below(std::uint32_t depth) const noexcept {
    return worth_ >= any ? any : worth_ > depth ? worth_ - depth : 0;
  }
  /// Forks at this address or above are asked for.
  std::uintptr_t above() const noexcept {
    return worth_ >= any || origin_ < worth_ * unit ? 0 : origin_ - worth_ * unit;
  }
  void relax() noexcept {
    if (worth_ < any) worth_ += step;
  }
  /// Whether a fork, which is not small, is to leave its task to thieves.
  WEFT_NOINLINE bool exposes(std::uintptr_t address) noexcept {
    const std::uint32_t depth = depth_of(address);
    const auto now = base::clock::now();
    const auto credit = now - next_;
    if (credit < std::chrono::nanoseconds(0)) {
      worth_ = depth > 0 ? depth - 1 : 0;
      return false;
    }
    if (credit > granularity::exposed * granularity::exposed_burst) {
      if (worth_ < any) worth_ += step;
      next_ = now - granularity::exposed * granularity::exposed_burst;
    }
    next_ += granularity::exposed;
    return true;
  }

 private:
  static constexpr std::uintptr_t unit = 32;
  static constexpr std::uint32_t step = 8;

  std::uintptr_t origin_ = 0;
  std::uint32_t worth_ = any;
  base::clock::time_point next_{};
};

}  // namespace weft::inline WEFT_ABI::sched
