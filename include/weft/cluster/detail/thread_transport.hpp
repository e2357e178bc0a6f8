// SPDX-License-Identifier: BSL-1.0
// Messages between threads of one process.
#pragma once

#include <weft/base/error.hpp>
#include <weft/cluster/transport.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// How the network of a thread_cluster treats its messages.
struct thread_network {
  std::uint32_t disorder = 0;      ///< seed of an order of its own, with delays; 0: as sent, and at once
  std::uint64_t damaged = 0;       ///< the number of a message of which a byte is changed, from 1; 0: none
  std::size_t longest = SIZE_MAX;  ///< how many bytes a message may have
  int mute = -1;                   ///< the process whose messages are lost, from some number on; -1: none
  std::uint64_t mute_after = 1;    ///< how many of them arrive
};

/// Where the messages of all threads are.
class thread_hub {
 public:
  thread_hub(int size, const thread_network& network)
      : network_(network), random_(network.disorder), boxes_(static_cast<std::size_t>(size)) {}

  int size() const noexcept { return static_cast<int>(boxes_.size()); }
  std::size_t longest() const noexcept { return network_.longest; }
  void send(int from, int to, bytes message) {
    require_length(message, longest());
    box& b = at_(to);
    {
      const std::lock_guard hold(mutex_);
      if (from == network_.mute && sent_by_mute_++ >= network_.mute_after) return;
      if (++sent_ == network_.damaged) message[message.size() / 2] ^= std::byte{1};
      b.waiting.emplace_back(from, std::move(message));
    }
    b.bell.ring();
  }
  int receive(int at, bytes& message) {
    box& b = at_(at);
    const std::lock_guard hold(mutex_);
    if (!failure_.empty()) throw error(failure_);
    if (b.waiting.empty()) return -1;
    std::size_t which = 0;
    if (network_.disorder != 0) {
      if (random_() % 2 == 0) return -1;  // it is still on its way
      which = random_() % b.waiting.size();
    }
    auto& taken = b.waiting[which];
    const int from = taken.first;
    message = std::move(taken.second);
    b.waiting.erase(b.waiting.begin() + static_cast<std::ptrdiff_t>(which));
    return from;
  }
  void wait(int at, std::chrono::nanoseconds at_most) noexcept { at_(at).bell.wait(at_most); }
  void wake(int at) noexcept { at_(at).bell.ring(); }
  void fail(const std::string& why) {
    {
      const std::lock_guard hold(mutex_);
      if (failure_.empty()) failure_ = why;
    }
    for (box& b : boxes_) b.bell.ring();
  }

 private:
  struct box {
    std::deque<std::pair<int, bytes>> waiting;
    doorbell bell;
  };
  box& at_(int process) noexcept { return boxes_[static_cast<std::size_t>(process)]; }

  const thread_network network_;
  std::mutex mutex_;
  std::minstd_rand random_;
  std::uint64_t sent_ = 0, sent_by_mute_ = 0;
  std::string failure_;
  std::vector<box> boxes_;
};

/// The end of one thread.
class thread_transport : public transport {
 public:
  thread_transport(thread_hub& hub, int rank) noexcept : hub_(hub), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return hub_.size(); }
  std::size_t longest() const noexcept override { return hub_.longest(); }
  using transport::send;
  void send(int to, bytes message, std::function<void()> left) override {
    hub_.send(rank_, to, std::move(message));
    if (left) left();
  }
  int receive(bytes& message) override { return hub_.receive(rank_, message); }
  void wait(std::chrono::nanoseconds at_most) override { hub_.wait(rank_, at_most); }
  void wake() noexcept override { hub_.wake(rank_); }
  void fail(const std::string& why) noexcept override { hub_.fail(why); }

 private:
  thread_hub& hub_;
  int rank_;
};

}  // namespace weft::inline WEFT_ABI::remote
