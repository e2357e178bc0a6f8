// SPDX-License-Identifier: BSL-1.0
// Kernel threads beside the workers, for calls that may block for long.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/base/thread.hpp>

#include <climits>
#include <list>
#include <mutex>

namespace weft::inline WEFT_ABI::sched {

/// As many threads as there are calls at the same time; a few of them stay for later calls.
///
/// Who may touch it when: everything under `mutex_`, but `epoch_`, which is changed under it and on which
/// idle threads sleep. *Thread safety*: any thread, any member but constructor and destructor.
class spare_threads {
 public:
  /// Something to be executed once. It may be gone when `execute` returns.
  struct call {
    void (*execute)(call&) noexcept = nullptr;
    call* next = nullptr;
  };

  spare_threads() = default;
  spare_threads(const spare_threads&) = delete;
  spare_threads& operator=(const spare_threads&) = delete;
  /// *Requires*: all calls have ended.
  ~spare_threads() {
    {
      const std::lock_guard hold(mutex_);
      closing_ = true;
      epoch_.fetch_add(1, base::memory_order_relaxed);  // ordered by the lock
    }
    base::futex_wake(epoch_, INT_MAX);
    for (base::thread& t : threads_) t.join();
    for (base::thread& t : ended_) t.join();
  }

  /// Lets a thread that does nothing else execute `c`. *Throws*: std::system_error, std::bad_alloc; then it
  /// is not executed.
  void submit(call& c) {
    std::list<base::thread> ended;
    {
      const std::lock_guard hold(mutex_);
      ended.swap(ended_);
      if (waiting_ >= idle_) {
        threads_.emplace_front();
        try {
          threads_.front() = base::thread(&spare_threads::main_, this, threads_.begin());
        } catch (...) {
          threads_.pop_front();
          throw;
        }
        ++idle_;
      }
      c.next = nullptr;
      (last_ != nullptr ? last_->next : first_) = &c;
      last_ = &c;
      ++waiting_;
      epoch_.fetch_add(1, base::memory_order_relaxed);  // ordered by the lock
    }
    base::futex_wake(epoch_, 1);
    for (base::thread& t : ended) t.join();
  }

 private:
  static constexpr std::size_t most_idle = 4;

  /// A thread counts as idle from its beginning on, except while it executes a call.
  void main_(std::list<base::thread>::iterator self) noexcept {
    for (;;) {
      call* c = nullptr;
      std::uint32_t seen = 0;
      {
        const std::lock_guard hold(mutex_);
        if (closing_) return;
        if (first_ != nullptr) {
          c = first_;
          first_ = c->next;
          if (first_ == nullptr) last_ = nullptr;
          --waiting_;
          --idle_;
        } else if (idle_ > most_idle) {
          --idle_;
          ended_.splice(ended_.begin(), threads_, self);
          return;
        }
        seen = epoch_.load(base::memory_order_relaxed);  // ordered by the lock
      }
      if (c == nullptr) {
        base::futex_wait(epoch_, seen);
        continue;
      }
      c->execute(*c);
      const std::lock_guard hold(mutex_);
      ++idle_;
    }
  }

  base::mutex mutex_;
  call* first_ = nullptr;
  call* last_ = nullptr;
  std::size_t waiting_ = 0;  ///< calls that no thread has taken
  std::size_t idle_ = 0;
  bool closing_ = false;
  std::list<base::thread> threads_, ended_;
  base::atomic<std::uint32_t> epoch_{0};
};

}  // namespace weft::inline WEFT_ABI::sched
