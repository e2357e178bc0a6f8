// SPDX-License-Identifier: BSL-1.0
// Kernel threads beside the workers, for calls that may block for long.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/base/thread.hpp>

#include <climits>
#include <mutex>
#include <utility>

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
    join_all_(threads_);
    join_all_(ended_);
  }

  /// Lets a thread that does nothing else execute `c`. *Throws*: std::system_error, std::bad_alloc; then it
  /// is not executed.
  void submit(call& c) {
    spare* ended = nullptr;
    {
      const std::lock_guard hold(mutex_);
      if (waiting_ >= idle_) {
        auto* const fresh = new spare;
        try {
          fresh->thread = base::thread(&spare_threads::main_, this, fresh);
        } catch (...) {
          delete fresh;
          throw;
        }
        link_(threads_, *fresh);
        ++idle_;
      }
      ended = std::exchange(ended_, nullptr);
      c.next = nullptr;
      (last_ != nullptr ? last_->next : first_) = &c;
      last_ = &c;
      ++waiting_;
      epoch_.fetch_add(1, base::memory_order_relaxed);  // ordered by the lock
    }
    base::futex_wake(epoch_, 1);
    join_all_(ended);
  }

 private:
  struct spare {
    base::thread thread;
    spare* next = nullptr;
    spare* previous = nullptr;
  };
  static constexpr std::size_t most_idle = 4;

  /// A thread counts as idle from its beginning on, except while it executes a call.
  void main_(spare* self) noexcept {
    affinity_.apply();  // not that of the worker whose body came first
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
          (self->previous != nullptr ? self->previous->next : threads_) = self->next;
          if (self->next != nullptr) self->next->previous = self->previous;
          link_(ended_, *self);
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

  static void link_(spare*& list, spare& s) noexcept {
    s.previous = nullptr;
    s.next = std::exchange(list, &s);
    if (s.next != nullptr) s.next->previous = &s;
  }
  static void join_all_(spare* list) noexcept {
    while (list != nullptr) {
      spare* const s = std::exchange(list, list->next);
      s->thread.join();
      delete s;
    }
  }

  base::affinity affinity_;  ///< of whoever made the runtime
  base::mutex mutex_;
  call* first_ = nullptr;
  call* last_ = nullptr;
  std::size_t waiting_ = 0;  ///< calls that no thread has taken
  std::size_t idle_ = 0;
  bool closing_ = false;
  spare* threads_ = nullptr;
  spare* ended_ = nullptr;  ///< to be joined
  base::atomic<std::uint32_t> epoch_{0};
};

}  // namespace weft::inline WEFT_ABI::sched
