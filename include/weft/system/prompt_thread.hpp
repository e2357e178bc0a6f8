// SPDX-License-Identifier: BSL-1.0
// A thread that mostly waits, and runs soon after it is woken although others compute.
#pragma once

#include <weft/base/config.hpp>

#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace weft::inline WEFT_ABI::base {

/// While it lives, the calling thread asks the kernel for slices of a tenth of a millisecond, and for timers
/// without slack. A thread that computes gives its processor up to one that asks for shorter slices, where it
/// would otherwise keep it for some milliseconds after that has been woken; the shares of both remain as they
/// are. Needs no privilege. Linux 6.12 and later take the length of slices, others ignore it; so does a
/// thread of another policy than SCHED_OTHER. Threads that are made meanwhile inherit both.
///
/// *Thread safety*: made and destroyed by the same thread. *Cost*: five system calls.
class prompt_thread {
#if defined(__linux__)
 public:
  prompt_thread() noexcept {
    slack_ = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (slack_ > 0) ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    changed_ =
        ::syscall(SYS_sched_getattr, 0, &before_, sizeof before_, 0) == 0 && before_.policy == SCHED_OTHER;
    if (!changed_) return;
    attributes shorter = before_;
    shorter.runtime = slice;
    changed_ = set_(shorter);
  }
  prompt_thread(const prompt_thread&) = delete;
  prompt_thread& operator=(const prompt_thread&) = delete;
  ~prompt_thread() {
    if (changed_) set_(before_);
    if (slack_ > 0) ::prctl(PR_SET_TIMERSLACK, slack_, 0, 0, 0);
  }

 private:
  /// As the kernel's struct sched_attr begins, in its first version.
  struct attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;  ///< nanoseconds
  };
  static constexpr std::uint64_t slice = 100'000;  ///< nanoseconds; the kernel takes no less

  static bool set_(attributes a) noexcept {
    a.size = sizeof a;
    return ::syscall(SYS_sched_setattr, 0, &a, 0) == 0;
  }

  attributes before_{};
  int slack_ = 0;
  bool changed_ = false;
#endif
};

}  // namespace weft::inline WEFT_ABI::base
