// SPDX-License-Identifier: BSL-1.0
// Writes the traces of a process that is about to end by SIGABRT: std::terminate, a failed check, abort().
#pragma once

#include <weft/observe/trace.hpp>
#include <weft/task/current.hpp>

#include <unistd.h>

#include <csignal>

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
  /// Only calls that are safe in a signal handler.
  WEFT_PER_MODULE static void on_abort(int signal) noexcept {
    if (base::lock_within(mutex_, 10'000)) {
      const sched::strand& s = sched::current();
      const bool in_task = !sched::is_outside(s) && s.row != nullptr;
      for (watched_trace* t = first_; t != nullptr; t = t->next_) {
        const bool own = in_task && t->has(*s.row);
        t->write_last_words(own ? s.slices : nullptr, own ? s.row : nullptr);
      }
      mutex_.unlock();
    }
    // It goes on as if this handler did not exist, when it returns: abort() raises the signal once more.
    sigaction(SIGABRT, &previous_, nullptr);
    raise(signal);
  }
  static void take_signal() noexcept {
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

  WEFT_PER_PROCESS static inline base::spin_lock mutex_;
  WEFT_PER_PROCESS static inline watched_trace* first_ = nullptr;
  WEFT_PER_PROCESS static inline struct sigaction previous_ = {};
  watched_trace* next_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::observe
