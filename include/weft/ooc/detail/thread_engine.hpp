// SPDX-License-Identifier: BSL-1.0
// The engine that works everywhere: threads that block in pread and pwrite.
#pragma once

#include <weft/ooc/io_engine.hpp>

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::inline WEFT_ABI::ooc::detail {

/// One thread for each transfer that may be on its way. Who may touch it when: the list belongs to who holds
/// the lock; a transfer to the thread that has taken it.
class thread_engine final : public io_engine {
 public:
  explicit thread_engine(unsigned threads) {
    try {
      for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work_(); });
    } catch (...) {
      if (threads_.empty()) throw;  // fewer do, too
    }
  }
  ~thread_engine() override {
    {
      const std::lock_guard hold(mutex_);
      over_ = true;
    }
    more_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  const char* name() const noexcept override { return "threads"; }
  bool start(transfer& t) noexcept override {
    {
      const std::lock_guard hold(mutex_);
      t.next = nullptr;
      (last_ != nullptr ? last_->next : first_) = &t;
      last_ = &t;
    }
    more_.notify_one();
    return true;
  }

 private:
  void work_() noexcept {
    std::unique_lock hold(mutex_);
    for (;;) {
      more_.wait(hold, [this] { return over_ || first_ != nullptr; });
      if (first_ == nullptr) return;
      transfer& t = *first_;
      first_ = t.next;
      if (first_ == nullptr) last_ = nullptr;
      hold.unlock();
      const ssize_t n = t.write ? ::pwrite(t.descriptor, t.memory, t.size, static_cast<off_t>(t.offset))
                                : ::pread(t.descriptor, t.memory, t.size, static_cast<off_t>(t.offset));
      t.ended(t, n < 0 ? -errno : n);
      hold.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  transfer* first_ = nullptr;
  transfer* last_ = nullptr;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft::inline WEFT_ABI::ooc::detail
