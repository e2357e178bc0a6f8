// SPDX-License-Identifier: BSL-1.0
// Knows whether the process was forked (POSIX fork) since an object was made: its threads do not exist then.
#pragma once

#include <weft/base/atomic.hpp>

#include <pthread.h>

namespace weft::inline WEFT_ABI::sched {

/// Remembers the process it was made in. *Cost* of asking: one load.
class forked_process {
 public:
  WEFT_PER_MODULE forked_process() noexcept : generation_(current()) {}
  bool in_this_process() const noexcept { return generation_ == count_.load(base::memory_order_relaxed); }

 private:
  /// Each module for itself, since the C library forgets what an unloaded module has registered. So the
  /// number may grow by more than one at a fork.
  WEFT_PER_MODULE static unsigned current() noexcept {
    // Only the forked child's single thread writes, before any other thread of it exists: relaxed suffices.
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { count_.fetch_add(1, base::memory_order_relaxed); });
    static_cast<void>(registered);
    return count_.load(base::memory_order_relaxed);
  }

  WEFT_PER_PROCESS static inline base::atomic<unsigned> count_{0};
  unsigned generation_;
};

}  // namespace weft::inline WEFT_ABI::sched
