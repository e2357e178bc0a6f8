// SPDX-License-Identifier: BSL-1.0
// An event count: threads sleep until something happens, and whoever makes it happen pays only for sleepers.
#pragma once

#include <weft/base/atomic.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdint>

namespace weft::base {

/// Blocks while `word` holds `seen`, at most for `limit` if there is one; may return early.
inline void futex_wait(atomic<std::uint32_t>& word, std::uint32_t seen,
                       const timespec* limit = nullptr) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, limit, nullptr, 0);
}

/// Wakes at most `count` threads blocked on `word`.
inline void futex_wake(atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// Sleeping without lost wake-ups (protocol in sched/README.md, "Sleep and wake").
/// A sleeper announces itself, fences heavily, looks for work once more, and only then waits; a notifier
/// publishes work and then reads the number of waiters. One of the two sees the other.
/// *Thread safety*: any thread, any member.
class event_count {
 public:
  /// Announces a sleeper. *Returns*: the key for wait(). *Effects*: a full fence against notifiers.
  std::uint32_t prepare() noexcept {
    waiters_.fetch_add(1, memory_order_seq_cst);  // before the fence: pairs with any_waiting in notifiers
    const std::uint32_t key = epoch_.load(memory_order_acquire);
    heavy_fence();
    return key;
  }
  /// Withdraws the announcement.
  void cancel() noexcept { waiters_.fetch_sub(1, memory_order_seq_cst); }
  /// Sleeps until a notification later than prepare(). *Requires*: prepare() returned `key`.
  void wait(std::uint32_t key) noexcept {
    while (epoch_.load(memory_order_acquire) == key) futex_wait(epoch_, key);  // pairs with notify's release
    waiters_.fetch_sub(1, memory_order_seq_cst);
  }
  /// The same, at most until `end`.
  void wait_until(std::uint32_t key, std::chrono::steady_clock::time_point end) noexcept {
    while (epoch_.load(memory_order_acquire) == key) {  // as in wait
      const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
      const timespec limit{seconds.count(), (left - seconds).count()};
      futex_wait(epoch_, key, &limit);
    }
    waiters_.fetch_sub(1, memory_order_seq_cst);
  }
  /// Whether somebody sleeps or is about to. *Requires*: the work was published by owner_store or stronger.
  bool any_waiting() const noexcept { return owner_load(waiters_) != 0; }
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

}  // namespace weft::base
