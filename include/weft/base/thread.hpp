// SPDX-License-Identifier: BSL-1.0
// Kernel threads, from the same platform as all else, and the processors they run on.
#pragma once

#include <weft/base/platform.hpp>

#if !defined(WEFT_PLATFORM)
#include <weft/base/processor_set.hpp>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>
#include <thread>

namespace weft::inline WEFT_ABI::base {

using std::thread;

/// Lets a thread run on one processor only. *Requires*: the thread is joinable. *Returns*: 0, or the number
/// of an error: EINVAL if the process may not use the processor. *Throws*: std::bad_alloc.
inline int pin(thread& t, unsigned processor) {
  processor_set one(processor + std::size_t{1});
  one.add(processor);
  return pthread_setaffinity_np(t.native_handle(), one.bytes(), one.data());
}

/// The processors on which a thread may run.
class affinity {
 public:
  /// Those of the calling thread.
  affinity() {
    ask_for_processors(
        [](processor_set& s) { return pthread_getaffinity_np(pthread_self(), s.bytes(), s.data()); },
        [this](const processor_set& s) {
          set_.emplace(s.end());
          for (std::size_t i = 0; i < s.end(); ++i)
            if (s.has(i)) set_->add(i);
        });
  }
  /// Lets the calling thread run there, if the kernel still allows it.
  void apply() noexcept {
    if (set_) pthread_setaffinity_np(pthread_self(), set_->bytes(), set_->data());
  }

 private:
  std::optional<processor_set> set_;
};

/// *Returns*: whether the thread may run on this processor only, as the kernel sees it now. *Requires*,
/// *Throws*: as pin.
inline bool is_pinned(thread& t, unsigned processor) {
  bool pinned = false;
  ask_for_processors(
      [&](processor_set& s) { return pthread_getaffinity_np(t.native_handle(), s.bytes(), s.data()); },
      [&](const processor_set& s) { pinned = s.size() == 1 && s.has(processor); });
  return pinned;
}

/// *Returns*: the number by which the kernel knows the calling thread.
inline int kernel_thread() noexcept { return gettid(); }
/// *Returns*: the processor of the calling thread; negative: not known.
inline int current_processor() noexcept { return sched_getcpu(); }

/// Has a thread go on elsewhere if it waits for its turn on the processor of the calling thread, and may run
/// on `least` at least. Where it may run stays as it is. Nothing happens if it has ended, or is not known
/// (0). *Cost*: some system calls.
inline void move_away(int thread, std::size_t least) noexcept {
  const int here = current_processor();
  if (thread <= 0 || here < 0) return;
  try {
    ask_for_processors(
        [&](processor_set& s) { return sched_getaffinity(thread, s.bytes(), s.data()) == 0 ? 0 : errno; },
        [&](const processor_set& s) {
          processor_set others(s.end());
          for (std::size_t i = 0; i < s.end(); ++i)
            if (s.has(i) && i != static_cast<std::size_t>(here)) others.add(i);
          if (others.size() == 0 || others.size() == s.size() || s.size() < least) return;
          // The kernel moves it before the first call returns.
          sched_setaffinity(thread, others.bytes(), others.data());
          sched_setaffinity(thread, s.bytes(), s.data());
        });
  } catch (const std::bad_alloc&) {  // then it waits
  }
}

}  // namespace weft::inline WEFT_ABI::base
#else
namespace weft::inline WEFT_ABI::base {

/// Threads of other platforms have no processors.
inline int pin(thread&, unsigned) noexcept { return 0; }
inline bool is_pinned(thread&, unsigned) noexcept { return true; }
inline int kernel_thread() noexcept { return 0; }
inline int current_processor() noexcept { return -1; }
inline void move_away(int, std::size_t) noexcept {}
struct affinity {
  void apply() noexcept {}
};

}  // namespace weft::inline WEFT_ABI::base
#endif
