// SPDX-License-Identifier: BSL-1.0
// What the processes of a cluster send their messages by.
#pragma once

#include <weft/base/error.hpp>
#include <weft/base/platform.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// A message as it travels.
using bytes = std::vector<std::byte>;

/// *Throws*: weft::error for a message that is too long for a transport.
inline void require_length(const bytes& message, std::size_t longest) {
  if (message.size() > longest)
    throw error("weft: a message of " + std::to_string(message.size()) +
                " bytes is too long to go to another process; the most are " + std::to_string(longest));
}

/// The processors of a process.
struct processor_room {
  unsigned allowed = 0;  ///< that it may use; 0: not known
  double share = 0;      ///< the same, those that other processes of the job may use, too, shared among them
};

/// Wakes one thread that waits for a while.
class doorbell {
 public:
  /// *Thread safety*: any thread.
  void ring() noexcept {
    // Release publishes why it rings; pairs with wait.
    rung_.store(1, base::memory_order_release);
    base::futex_wake(rung_, 1);
  }
  /// Returns when it rings or has rung, or after this time. *Thread safety*: one thread.
  void wait(std::chrono::nanoseconds at_most) noexcept {
    if (rung_.load(base::memory_order_relaxed) == 0)
      base::futex_wait_until(rung_, 0, base::clock::now() + at_most);
    rung_.exchange(0, base::memory_order_acquire);  // pairs with ring
  }

 private:
  base::atomic<std::uint32_t> rung_{0};
};

/// One process's end. Messages may overtake each other. *Thread safety*: one thread, but for wake().
class transport {
 public:
  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;

  /// The number of this process, and how many there are.
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// A number of the machine of a process: messages that stay in one machine are the fastest.
  virtual int machine_of(int process) const noexcept {
    static_cast<void>(process);
    return 0;
  }
  /// What this process has to run on.
  virtual processor_room processors() const noexcept { return {}; }
  /// How many bytes a message may have.
  virtual std::size_t longest() const noexcept = 0;
  /// Sends without waiting for the receiver. `left`: called once when the message needs no memory of this
  /// process any more, by this call or a later one of send() or receive(); not for messages that are still
  /// here when the transport is destroyed. *Requires*: `left` throws nothing, and does not send or receive.
  /// *Throws*: weft::error, also for a message that is longer; std::bad_alloc; then it is not called.
  virtual void send(int to, bytes message, std::function<void()> left) = 0;
  void send(int to, bytes message) { send(to, std::move(message), {}); }
  /// Takes a message that has come. *Returns*: who has sent it; -1 if there is none.
  /// *Throws*: weft::error; also if another process has called fail().
  virtual int receive(bytes& message) = 0;
  /// Whether something is on its way that gets on only while this process receives.
  virtual bool moves() const noexcept { return false; }
  /// Returns when something may have come, after wake(), or after this time.
  virtual void wait(std::chrono::nanoseconds at_most) = 0;
  virtual void wake() noexcept = 0;
  /// No process can go on: either ends the job, or makes receive() throw in all of them.
  virtual void fail(const std::string& why) noexcept = 0;
};

}  // namespace weft::inline WEFT_ABI::remote
