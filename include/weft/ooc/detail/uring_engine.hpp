// SPDX-License-Identifier: BSL-1.0
// The engine on io_uring, for files that are compiled with WEFT_LIBURING and linked with liburing.
#pragma once

#include <weft/ooc/io_engine.hpp>

#ifdef WEFT_LIBURING
#include <weft/base/atomic.hpp>

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>

namespace weft::inline WEFT_ABI::ooc::detail {

/// Any thread submits, under a lock; one thread waits for what has ended. Who may touch it when: the
/// submission queue belongs to who holds the lock, the completion queue to the thread.
class uring_engine final : public io_engine {
 public:
  /// *Returns*: null where the kernel does not allow a ring, or refuses reads or writes through it.
  static std::unique_ptr<io_engine> make(unsigned in_flight) {
    std::unique_ptr<uring_engine> made(new uring_engine);
    const unsigned entries = std::clamp(in_flight + 1, 2u, 4096u);  // one for the end
    if (::io_uring_queue_init(entries, &made->ring_, 0) != 0) return nullptr;
    made->opened_ = true;
    if (!made->transfers_() || !made->awaits_end_()) return nullptr;
    made->waiter_ = std::thread([engine = made.get()] { engine->wait_(); });
    return made;
  }
  ~uring_engine() override {
    if (waiter_.joinable()) {
      // Not a submission: this works also when the ring takes no more.
      while (::eventfd_write(end_, 1) != 0 && errno == EINTR) {
      }
      waiter_.join();
    }
    if (opened_) ::io_uring_queue_exit(&ring_);
    if (end_ >= 0) ::close(end_);
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

  /// Whether a page can be written and read through the ring: old kernels and sandboxes have rings that
  /// refuse some operations.
  bool transfers_() noexcept {
    const int f = ::memfd_create("weft-probe", MFD_CLOEXEC);
    if (f < 0) return false;
    char out[64] = "weft", back[64] = "";
    bool good = true;
    for (const bool write : {true, false}) {
      io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
      if (write)
        ::io_uring_prep_write(entry, f, out, sizeof out, 0);
      else
        ::io_uring_prep_read(entry, f, back, sizeof back, 0);
      io_uring_cqe* found = nullptr;
      int failed = ::io_uring_submit(&ring_) == 1 ? 0 : -EIO;
      if (failed == 0)
        while ((failed = ::io_uring_wait_cqe(&ring_, &found)) == -EINTR) {
        }
      good = good && failed == 0 && found->res == static_cast<int>(sizeof out);
      if (failed != 0) break;
      ::io_uring_cqe_seen(&ring_, found);
    }
    ::close(f);
    return good && std::equal(std::begin(out), std::end(out), std::begin(back));
  }
  /// The destructor can end the thread.
  bool awaits_end_() noexcept {
    end_ = ::eventfd(0, EFD_CLOEXEC);
    return end_ >= 0 &&
           submit_([this](io_uring_sqe* entry) { ::io_uring_prep_poll_add(entry, end_, POLLIN); }, nullptr);
  }

  template <class Prepare>
  bool submit_(Prepare prepare, void* t) noexcept {
    const std::lock_guard hold(mutex_);
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) {  // the queue is full of what the kernel refused before
      ::io_uring_submit(&ring_);
      entry = ::io_uring_get_sqe(&ring_);
      if (entry == nullptr) return false;
    }
    prepare(entry);
    ::io_uring_sqe_set_data(entry, t);
    submitted_.fetch_add(1, base::memory_order_release);  // pairs with the load in wait_
    ::io_uring_submit(&ring_);
    if (::io_uring_sq_ready(&ring_) == 0) return true;
    // The kernel has not taken it, and an entry cannot be withdrawn; so it becomes one that does nothing.
    ::io_uring_prep_nop(entry);
    ::io_uring_sqe_set_data(entry, &nothing_);
    return false;
  }
  void wait_() noexcept {
    for (;;) {
      io_uring_cqe* found = nullptr;
      if (::io_uring_wait_cqe(&ring_, &found) != 0) {  // a signal
        std::this_thread::yield();
        continue;
      }
      // The kernel has passed the transfer on, which neither the memory model nor Thread Sanitizer knows:
      // acquire pairs with the release in submit_.
      static_cast<void>(submitted_.load(base::memory_order_acquire));
      void* const of = ::io_uring_cqe_get_data(found);
      const long result = found->res;
      ::io_uring_cqe_seen(&ring_, found);
      if (of == nullptr) return;
      if (of == &nothing_) continue;
      auto* const t = static_cast<transfer*>(of);
      t->ended(*t, result);
    }
  }

  io_uring ring_;
  bool opened_ = false;
  int end_ = -1;      // can be read when the thread shall end
  char nothing_ = 0;  // its address marks entries that do nothing
  base::atomic<std::size_t> submitted_{0};
  std::mutex mutex_;
  std::thread waiter_;
};

inline const bool uring_registered = (uring_factory = &uring_engine::make, true);

}  // namespace weft::inline WEFT_ABI::ooc::detail
#endif
