// SPDX-License-Identifier: BSL-1.0
// Waiting for a moment: a growing wait, and a small lock for short sections.
#pragma once

#include <weft/base/atomic.hpp>

namespace weft::inline WEFT_ABI::base {

/// Waits longer each time; soon gives the processor away, since the thread waited for may need this core.
class backoff {
 public:
  void wait() noexcept {
    if (round_ < 6) {
      for (unsigned i = 0; i < (1u << round_); ++i) pause();
      ++round_;
    } else {
      yield();
    }
  }

 private:
  unsigned round_ = 0;
};

/// Locks, unless that takes more than so many rounds of waiting. For those who may have stopped the holder.
/// *Returns*: whether it is locked now.
template <class Lock>
bool lock_within(Lock& lock, unsigned rounds) noexcept {
  for (backoff wait; !lock.try_lock(); wait.wait())
    if (rounds-- == 0) return false;
  return true;
}

/// A lock for sections of some tens of instructions; held across user code only where that is as short (steal
/// functions).
/// *Thread safety*: any thread.
class spin_lock {
 public:
  bool try_lock() noexcept {
    // Acquire pairs with the release in unlock; the plain look first keeps the line shared while it is held.
    return !held_.load(memory_order_relaxed) && !held_.exchange(true, memory_order_acquire);
  }
  void lock() noexcept {
    for (backoff wait; !try_lock();) wait.wait();
  }
  /// The same for somebody for whom others wait: tries more often than they. *Returns*: how often it was in
  /// vain.
  unsigned lock_first() noexcept {
    constexpr unsigned eager = 256;  // then the holder may need this core
    unsigned round = 0;
    for (; !try_lock(); ++round) round < eager ? pause() : yield();
    return round;
  }
  void unlock() noexcept { held_.store(false, memory_order_release); }  // pairs with try_lock

 private:
  atomic<bool> held_{false};
};

}  // namespace weft::inline WEFT_ABI::base
