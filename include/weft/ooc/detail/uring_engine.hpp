// SPDX-License-Identifier: BSL-1.0
// The engine on io_uring, for files that are compiled with WEFT_LIBURING and linked with liburing.
#pragma once

#include <weft/ooc/io_engine.hpp>

#ifdef WEFT_LIBURING
#include <weft/base/atomic.hpp>

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Any thread submits, under a lock; one thread waits for what has ended. Who may touch it when: the
/// submission queue belongs to who holds the lock, the completion queue to the thread.
class uring_engine final : public io_engine {
 public:
  /// *Returns*: null where the kernel does not allow a ring.
  static std::unique_ptr<io_engine> make(unsigned in_flight) {
    std::unique_ptr<uring_engine> made(new uring_engine);
    const unsigned entries = std::clamp(in_flight + 1, 2u, 4096u);  // one for the end
    if (::io_uring_queue_init(entries, &made->ring_, 0) != 0) return nullptr;
    made->opened_ = true;
    made->waiter_ = std::thread([engine = made.get()] { engine->wait_(); });
    return made;
  }
  ~uring_engine() override {
    if (waiter_.joinable()) {
      submit_([](io_uring_sqe* entry) { ::io_uring_prep_nop(entry); }, nullptr);
      waiter_.join();
    }
    if (opened_) ::io_uring_queue_exit(&ring_);
  }
  const char* name() const noexcept override { return "io_uring"; }
  bool start(transfer& t) noexcept override {
    const auto size = static_cast<unsigned>(std::min<std::size_t>(t.size, 1u << 30));
    return submit_(
        [&](io_uring_sqe* entry) {
          if (t.write)
            ::io_uring_prep_write(entry, t.descriptor, t.memory, size, t.offset);
          else
            ::io_uring_prep_read(entry, t.descriptor, t.memory, size, t.offset);
        },
        &t);
  }

 private:
  uring_engine() noexcept : ring_() {}

  template <class Prepare>
  bool submit_(Prepare prepare, transfer* t) noexcept {
    const std::lock_guard hold(mutex_);
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
    prepare(entry);
    ::io_uring_sqe_set_data(entry, t);
    submitted_.fetch_add(1, base::memory_order_release);  // pairs with the load in wait_
    // What the kernel does not take at once stays in the queue, and it is asked again.
    for (;;) {
      const int taken = ::io_uring_submit(&ring_);
      if (taken > 0) return true;
      std::this_thread::yield();
    }
  }
  void wait_() noexcept {
    for (;;) {
      io_uring_cqe* found = nullptr;
      if (::io_uring_wait_cqe(&ring_, &found) != 0) continue;  // a signal
      // The kernel has passed the transfer on, which neither the memory model nor Thread Sanitizer knows:
      // acquire pairs with the release in submit_.
      static_cast<void>(submitted_.load(base::memory_order_acquire));
      auto* const t = static_cast<transfer*>(::io_uring_cqe_get_data(found));
      const long result = found->res;
      ::io_uring_cqe_seen(&ring_, found);
      if (t == nullptr) return;
      t->ended(*t, result);
    }
  }

  io_uring ring_;
  bool opened_ = false;
  base::atomic<std::size_t> submitted_{0};
  std::mutex mutex_;
  std::thread waiter_;
};

inline const bool uring_registered = (uring_factory = &uring_engine::make, true);

}  // namespace weft::inline WEFT_ABI::ooc::detail
#endif
