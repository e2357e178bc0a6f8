// SPDX-License-Identifier: BSL-1.0
// The layout of a sink: bytes leave in order, written by a thread of their own, so that no worker waits for
// it.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/wait.hpp>
#include <weft/io/failure.hpp>
#include <weft/stream/detail/layout.hpp>

#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::inline WEFT_ABI::stream {

/// Takes bytes as they come; returns when it has taken them all. Throws what has gone wrong.
using byte_sink = std::function<void(std::span<const std::byte>)>;

/// Writes to a descriptor: a pipe, a socket, a terminal, a file at its own position. A closed pipe is an
/// std::system_error (EPIPE), never a signal: the thread that calls this has SIGPIPE blocked.
inline byte_sink sink_to(int descriptor) {
  return [descriptor, done = std::uint64_t{0}](std::span<const std::byte> bytes) mutable {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
      if (n >= 0) {
        done += static_cast<std::uint64_t>(n);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        pollfd ready{descriptor, POLLOUT, 0};
        ::poll(&ready, 1, -1);
      } else if (errno != EINTR) {
        io::fail(errno, "write", "descriptor " + std::to_string(descriptor), done);
      }
    }
  };
}

/// A queue of bytes on their way, and the thread that empties it. *Thread safety*: any thread.
class sink_layout final : public stream_layout {
 public:
  /// `limit`: bytes in the queue beyond which producers wait.
  sink_layout(byte_sink sink, std::size_t limit) : sink_(std::move(sink)), limit_(limit) {}
  ~sink_layout() override { stop_(); }

  void place(std::span<const piece> pieces) override {
    std::size_t size = 0;
    for (const piece& p : pieces) size += p.size;
    std::vector<std::byte> bytes;
    bytes.reserve(size);
    for (const piece& p : pieces) bytes.insert(bytes.end(), p.data, p.data + p.size);
    const std::lock_guard hold(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (!thread_.joinable()) start_();
    queue_.push_back(std::move(bytes));
    queued_ += size;
    behind_.store(queued_ > limit_, base::memory_order_relaxed);
    filled_.notify_one();
  }
  std::size_t worth_while() const noexcept override { return std::size_t{1} << 16; }
  /// Waits while more than `limit` bytes are on their way. *Suspends*: yes. *Throws*: weft::cancelled.
  void wait_for_room() override {
    if (behind_.load(base::memory_order_relaxed)) wait_until_(limit_ / 2);  // a hint
  }
  void finish() override {
    wait_until_(0);
    stop_();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Somebody who waits until few enough bytes are on their way.
  struct waiter : sched::abandonable {
    sink_layout* at;
    std::size_t enough;
    bool listed = false;
    bool met = false;       ///< it may go on
    bool given_up = false;  ///< its run was stopped before
    waiter* after = nullptr;
  };

  bool may_go_(std::size_t enough) const noexcept { return queued_ <= enough || failure_ != nullptr; }
  void wait_until_(std::size_t enough) {
    waiter w;
    w.at = this;
    w.enough = enough;
    w.what = "the sink of an append stream";
    w.object = this;
    w.give_up = [](sched::abandonable& a) noexcept {
      auto& self = static_cast<waiter&>(a);
      if (self.at->give_up_(self)) sched::raise_signal(self);
    };
    sched::wait_abandonable(w, "appends to a sink that is behind", [this, &w] {
      const std::lock_guard hold(mutex_);
      if (w.given_up) return false;
      if (may_go_(w.enough)) return !(w.met = true);
      w.listed = true;
      w.after = std::exchange(waiters_, &w);
      return true;
    });
    if (w.given_up) throw cancelled();
  }
  /// The run of a waiter was stopped, who may not have begun to wait yet. *Returns*: whether it waits, and is
  /// to be told.
  bool give_up_(waiter& w) noexcept {
    const std::lock_guard hold(mutex_);
    if (w.met || w.given_up) return false;
    w.given_up = true;
    if (!w.listed) return false;
    for (waiter** link = &waiters_; *link != nullptr; link = &(*link)->after)
      if (*link == &w) {
        *link = w.after;
        break;
      }
    w.listed = false;
    return true;
  }
  /// Those who may go on now.
  waiter* take_satisfied_() noexcept {
    waiter* taken = nullptr;
    for (waiter** link = &waiters_; *link != nullptr;) {
      waiter* const w = *link;
      if (!may_go_(w->enough)) {
        link = &w->after;
        continue;
      }
      *link = w->after;
      w->listed = false;
      w->met = true;
      w->after = std::exchange(taken, w);
    }
    return taken;
  }
  void start_() {
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);  // the thread inherits it
    try {
      thread_ = std::thread([this] { write_all_(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void stop_() noexcept {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
      filled_.notify_one();
    }
    thread_.join();
  }
  void write_all_() noexcept {
    std::unique_lock hold(mutex_);
    for (;;) {
      filled_.wait(hold, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::vector<std::byte> bytes = std::move(queue_.front());
      queue_.pop_front();
      const bool failed = failure_ != nullptr;
      hold.unlock();
      std::exception_ptr failure;
      try {
        if (!failed) sink_(bytes);
      } catch (...) {
        failure = std::current_exception();
      }
      hold.lock();
      if (failure) failure_ = failure;
      queued_ -= bytes.size();
      behind_.store(queued_ > limit_ && failure_ == nullptr, base::memory_order_relaxed);
      waiter* satisfied = take_satisfied_();
      hold.unlock();
      while (satisfied != nullptr) sched::raise_signal(*std::exchange(satisfied, satisfied->after));
      hold.lock();
    }
  }

  const byte_sink sink_;
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::vector<std::byte>> queue_;
  std::size_t queued_ = 0;  // bytes in the queue, or being written
  std::exception_ptr failure_;
  bool stopping_ = false;
  waiter* waiters_ = nullptr;
  base::atomic<bool> behind_{false};
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::stream
