// SPDX-License-Identifier: BSL-1.0
// An event count: threads sleep until something happens, and whoever makes it happen pays only for sleepers.
#pragma once

#include <weft/base/atomic.hpp>

#include <climits>
#include <cstdint>

namespace weft::inline WEFT_ABI::base {

/// Sleeping without lost wake-ups (protocol in sched/README.md, "Sleep and wake").
/// A sleeper announces itself, fences heavily, looks for work once more, and only then waits; a notifier
/// publishes work and then reads the number of waiters. One of the two sees the other.
/// *Thread safety*: any thread, any member.
class event_count {
 public:
  /// Announces a sleeper, who has to pass a heavy fence before it looks for work once more. Without effect,
  /// that is still a full fence of this thread: enough against notifiers that fence as well.
  /// *Returns*: the key for wait().
  std::uint32_t announce() noexcept {
    waiters_.fetch_add(1, memory_order_seq_cst);  // before the fence: pairs with any_waiting in notifiers
    return epoch_.load(memory_order_acquire);
  }
  /// The same, with the fence.
  std::uint32_t prepare() noexcept {
    const std::uint32_t key = announce();
    static_cast<void>(heavy_fence());
    return key;
  }
  /// Withdraws the announcement.
  void cancel() noexcept { waiters_.fetch_sub(1, memory_order_seq_cst); }
  /// Sleeps until a notification later than announce(). *Requires*: that has returned `key`.
  void wait(std::uint32_t key) noexcept {
    while (epoch_.load(memory_order_acquire) == key) futex_wait(epoch_, key);  // pairs with notify's release
    waiters_.fetch_sub(1, memory_order_seq_cst);
  }
  /// The same, at most until `end`.
  void wait_until(std::uint32_t key, clock::time_point end) noexcept {
    while (epoch_.load(memory_order_acquire) == key && clock::now() < end)  // as in wait
      futex_wait_until(epoch_, key, end);
    waiters_.fetch_sub(1, memory_order_seq_cst);
  }
  /// Whether somebody sleeps or is about to. *Requires*: the work was published by owner_store or stronger.
  bool any_waiting() const noexcept { return owner_load(waiters_) != 0; }
  /// How many sleep or are about to. A hint.
  std::uint32_t waiting() const noexcept { return waiters_.load(memory_order_relaxed); }
  /// Wakes one sleeper (all that have only prepared return too).
  void notify_one() noexcept { notify(1); }
  /// Wakes every sleeper.
  void notify_all() noexcept { notify(INT_MAX); }

 private:
  void notify(int count) noexcept {
    epoch_.fetch_add(1, memory_order_acq_rel);  // pairs with the acquire in wait
    futex_wake(epoch_, count);
  }

  atomic<std::uint32_t> epoch_{0};
  atomic<std::uint32_t> waiters_{0};
};

}  // namespace weft::inline WEFT_ABI::base
