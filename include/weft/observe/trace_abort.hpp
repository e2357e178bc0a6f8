// SPDX-License-Identifier: BSL-1.0
// Writes the traces of a process that is about to end by SIGABRT: std::terminate, a failed check, abort().
#pragma once

#include <weft/observe/trace.hpp>
#include <weft/observe/writer_lock.hpp>
#include <weft/task/current.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <mutex>

namespace weft::inline WEFT_ABI::observe {

/// A trace that is written also then.
class watched_trace : public trace {
 public:
  /// As trace.
  watched_trace(const std::string& path, unsigned workers, std::size_t bytes) : trace(path, workers, bytes) {
    const std::lock_guard hold(mutex_);
    if (first_ == nullptr) take_signal();
    next_ = first_;
    first_ = this;
  }
  watched_trace(const watched_trace&) = delete;
  watched_trace& operator=(const watched_trace&) = delete;
  ~watched_trace() {
    const std::lock_guard hold(mutex_);
    watched_trace** link = &first_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    if (first_ == nullptr) give_signal_back();
  }

 private:
  /// How many milliseconds the end of the process waits for a thread that holds a lock of these.
  static constexpr unsigned patience = 5000;
  static constexpr std::uint64_t over = 1;  ///< no thread of a process has this number in aborter_

  /// Whether the calling thread is the first one that aborts. Another one waits until that has written all
  /// traces, however long it takes: the process ends with the first one that leaves the handler. A process
  /// that was forked meanwhile has neither that thread nor these traces.
  static bool aborts_first() noexcept {
    const std::uint64_t process = static_cast<std::uint64_t>(::getpid()) << 32;
    const std::uint64_t own = process | static_cast<std::uint32_t>(base::kernel_thread());
    for (std::uint64_t first = 0;;) {
      // Acquire, both: pairs with the release behind the writing.
      if (aborter_.compare_exchange_strong(first, own, base::memory_order_acquire,
                                           base::memory_order_acquire))
        return true;
      if (first == over || first == own || first >> 32 << 32 != process) return false;
      nap();
      first = 0;
    }
  }

  /// Only calls that are safe in a signal handler.
  WEFT_PER_MODULE static void on_abort(int signal) noexcept {
    if (aborts_first()) {
      write_all();
      aborter_.store(over, base::memory_order_release);  // pairs with aborts_first
    }
    // It goes on as if this handler did not exist, when it returns: abort() raises the signal once more.
    sigaction(SIGABRT, &previous_, nullptr);
    raise(signal);
  }
  static void write_all() noexcept {
    if (mutex_.lock_in_handler(patience)) {
      const sched::strand& s = sched::current();
      const bool in_task = !sched::is_outside(s) && s.row != nullptr;
      for (watched_trace* t = first_; t != nullptr; t = t->next_) {
        const bool own = in_task && t->has(*s.row);
        t->write_last_words(own ? s.slices : nullptr, own ? s.row : nullptr, patience);
      }
      mutex_.unlock();
    }
  }
  static void take_signal() noexcept {
    aborter_.store(0, base::memory_order_relaxed);  // published by mutex_ and by the signal's own order
    struct sigaction ours{};
    ours.sa_handler = &on_abort;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGABRT, &ours, &previous_);
  }
  /// Unless somebody else has taken the signal meanwhile.
  static void give_signal_back() noexcept {
    struct sigaction present{};
    if (sigaction(SIGABRT, nullptr, &present) == 0 && (present.sa_flags & SA_SIGINFO) == 0 &&
        present.sa_handler == &on_abort)
      sigaction(SIGABRT, &previous_, nullptr);
  }

  WEFT_PER_PROCESS static inline writer_lock mutex_;
  /// Process and kernel thread of the first that aborts; 0: none does; over: it has written all.
  WEFT_PER_PROCESS static inline base::atomic<std::uint64_t> aborter_{0};
  WEFT_PER_PROCESS static inline watched_trace* first_ = nullptr;
  WEFT_PER_PROCESS static inline struct sigaction previous_ = {};
  watched_trace* next_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::observe
