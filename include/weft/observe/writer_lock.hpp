// SPDX-License-Identifier: BSL-1.0
// A lock that knows its holder: for what is written by threads, and by signal handlers that have stopped one.
#pragma once

#include <weft/base/lock.hpp>
#include <weft/base/thread.hpp>

#include <time.h>

namespace weft::inline WEFT_ABI::observe {

/// Lets others have the processor for a millisecond. Safe in signal handlers.
inline void nap() noexcept {
  const timespec pause{0, 1'000'000};
  static_cast<void>(::nanosleep(&pause, nullptr));
}

/// *Thread safety*: any thread; all but lock() also in a signal handler.
class writer_lock {
 public:
  bool try_lock() noexcept {
    int nobody = 0;
    // Acquire pairs with the release in unlock; relaxed: who fails reads nothing.
    return holder_.compare_exchange_strong(nobody, base::kernel_thread(), base::memory_order_acquire,
                                           base::memory_order_relaxed);
  }
  void lock() noexcept {
    for (base::backoff wait; !try_lock();) wait.wait();
  }
  /// Locks, unless the calling thread is the holder itself, which the signal has stopped, or another one
  /// stays it for so many milliseconds. *Returns*: whether it is locked now.
  bool lock_in_handler(unsigned milliseconds) noexcept {
    for (; !try_lock(); --milliseconds) {
      // Relaxed: a thread finds its own number only where it has stored it.
      if (milliseconds == 0 || holder_.load(base::memory_order_relaxed) == base::kernel_thread())
        return false;
      nap();
    }
    return true;
  }
  void unlock() noexcept { holder_.store(0, base::memory_order_release); }  // pairs with try_lock

 private:
  base::atomic<int> holder_{0};  ///< a kernel thread; 0: nobody
};

}  // namespace weft::inline WEFT_ABI::observe
