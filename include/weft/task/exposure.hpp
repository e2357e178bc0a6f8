// SPDX-License-Identifier: BSL-1.0
// Which forks of a strand leave their tasks to thieves: those near the root of a recursion, at a limited
// rate.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/task/granularity.hpp>

#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

/// A task that a fork leaves to thieves is *exposed*. A strand exposes tasks before anybody asks for them, at
/// most one in granularity::exposure_interval on average, so that exposure costs little however short tasks
/// are. Where a body calls itself, tasks are the larger the nearer to the root they were forked. So if a fork
/// comes too early, deeper ones are not considered any more: the next ones are nearer to the root. If there
/// are few for a long time, or thieves find nothing, deeper ones are considered again.
///
/// Depth is bytes of stack between the strand's first task and the fork, as if all tasks between had been run
/// where they were forked. *Thread safety*: the owner's, but for what says otherwise. *Source*: limiting the
/// rate of deferral is the idea of heartbeat scheduling (Acar, Charguéraud, Guatto, Rainey, Sieczkowski,
/// PLDI'18), which promotes the oldest frame instead; the rate limiter is the generic cell rate algorithm.
class exposure {
 public:
  using clock = base::clock;

  /// A depth limit that every fork is within.
  static constexpr std::uint32_t unlimited = UINT32_MAX / 2;

  /// The first task of a strand begins where the stack is at `address`. `deepest`: the depth limit.
  void begin(std::uintptr_t address, std::uint32_t deepest) noexcept {
    origin_ = address;
    set_deepest(deepest);
    next_ = {};
    at_first_ = deepest == unlimited ? granularity::exposed_at_first : 0;
  }
  /// A task that was forked at `depth` begins where the stack is at `address`.
  void begin_task(std::uintptr_t address, std::uint16_t depth) noexcept { origin_ = address + depth * unit; }
  /// Where depth is zero. To be restored when the tasks begun since have ended.
  std::uintptr_t origin() const noexcept { return origin_; }
  void restore_origin(std::uintptr_t o) noexcept { origin_ = o; }

  /// The depth of a fork, to be kept in its closure.
  std::uint16_t depth_at(std::uintptr_t address) const noexcept {
    const std::uint32_t d = depth(address);
    return d < UINT16_MAX ? static_cast<std::uint16_t>(d) : UINT16_MAX;
  }
  /// The depth limit for a strand that begins with a task forked at this depth. *Thread safety*: any.
  std::uint32_t deepest_below(std::uint16_t depth) const noexcept {
    const std::uint32_t d = deepest();
    return d >= unlimited ? unlimited : d > depth ? d - depth : 0;
  }
  /// Forks at this address of the stack or above are within the depth limit.
  std::uintptr_t lowest_address() const noexcept {
    const std::uint32_t d = deepest();
    return d >= unlimited || origin_ < d * unit ? 0 : origin_ - d * unit;
  }

  /// Whether a fork at `address`, which is within the depth limit, exposes its task. `burst`: how many may be
  /// exposed in a row after a pause.
  WEFT_NOINLINE bool exposes(std::uintptr_t address, unsigned burst) noexcept {
    if (owed_) {
      owed_ = false;
      return true;
    }
    if (at_first_ != 0) {
      --at_first_;
      return true;
    }
    const auto now = clock::now();
    const auto longest = burst * granularity::exposure_interval;
    if (now < next_) {
      const std::uint32_t here = depth(address);
      set_deepest(here > frames_of_fork ? here - frames_of_fork : 0);
      return false;
    }
    if (now - next_ > longest) {
      if (next_ != clock::time_point()) consider_deeper();
      next_ = now - longest;
    }
    next_ += granularity::exposure_interval;
    return true;
  }
  /// The next fork exposes its task, at any time and depth.
  void owe() noexcept { owed_ = true; }
  bool owes() const noexcept { return owed_; }
  /// Thieves have found nothing: forks some frames deeper are within the depth limit, too; all forks, if none
  /// has exposed its task for a while.
  void hear_of_hunger(unsigned burst) noexcept {
    if (deepest() == unlimited) return;
    if (clock::now() - next_ > burst * granularity::exposure_interval)
      set_deepest(unlimited);
    else
      consider_deeper();
  }

 private:
  void consider_deeper() noexcept {
    if (deepest() < unlimited) set_deepest(deepest() + some_frames);
  }

  static constexpr std::uintptr_t unit = 32;  // bytes
  static constexpr std::uint32_t some_frames = 8;
  /// `address` is taken inside fork, some calls deeper than where the body compares with the limit.
  static constexpr std::uint32_t frames_of_fork = 16;

  // Relaxed: thieves only want to know about how deep it is.
  std::uint32_t deepest() const noexcept { return deepest_.load(base::memory_order_relaxed); }
  void set_deepest(std::uint32_t d) noexcept {
    if (deepest() != d) deepest_.store(d, base::memory_order_relaxed);
  }
  std::uint32_t depth(std::uintptr_t address) const noexcept {
    return address < origin_ ? static_cast<std::uint32_t>((origin_ - address) / unit) : 0;
  }

  std::uintptr_t origin_ = 0;
  base::atomic<std::uint32_t> deepest_{unlimited};  // in units
  bool owed_ = false;
  unsigned at_first_ = 0;     // so many more may be exposed whenever they come
  clock::time_point next_{};  // when the next one may be exposed
};

}  // namespace weft::inline WEFT_ABI::sched
