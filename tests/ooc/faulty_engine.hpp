// SPDX-License-Identifier: BSL-1.0
// An engine that does less than it is asked, later, in another order, or nothing at all.
#pragma once

#include "support/random.hpp"

#include <weft/ooc/io_engine.hpp>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft_test {

/// What happened to transfers.
struct fault_counters {
  std::atomic<int> shortened{0}, interrupted{0}, refused{0}, delayed{0}, reordered{0}, failed{0};
};

/// One thread does the transfers, badly. `fail(transfer)` gives the errno value that one fails with, or 0.
class faulty_engine final : public weft::ooc::io_engine {
 public:
  using failure = std::function<int(const weft::ooc::transfer&)>;
  faulty_engine(std::uint64_t seed, fault_counters& counters, failure fail = {})
      : random_(seed), counters_(counters), fail_(std::move(fail)), thread_([this] { work_(); }) {}
  ~faulty_engine() override {
    {
      const std::lock_guard hold(mutex_);
      over_ = true;
    }
    more_.notify_all();
    thread_.join();
  }
  const char* name() const noexcept override { return "faulty"; }
  bool start(weft::ooc::transfer& t) noexcept override {
    {
      const std::lock_guard hold(mutex_);
      if (choices_.one_in(6)) {
        counters_.refused += 1;
        return false;
      }
      waiting_.push_back(&t);
    }
    more_.notify_one();
    return true;
  }

 private:
  void work_() {
    std::unique_lock hold(mutex_);
    for (;;) {
      more_.wait(hold, [this] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      if (random_.one_in(4)) {  // others may come meanwhile
        counters_.delayed += 1;
        hold.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(random_.below(300)));
        hold.lock();
      }
      const std::size_t which = random_.below(waiting_.size());
      if (which != 0) counters_.reordered += 1;
      weft::ooc::transfer& t = *waiting_[which];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
      hold.unlock();
      t.ended(t, transfer_(t));
      hold.lock();
    }
  }
  long transfer_(const weft::ooc::transfer& t) {
    if (fail_)
      if (const int why = fail_(t)) {
        counters_.failed += 1;
        return -why;
      }
    if (random_.one_in(8)) {
      counters_.interrupted += 1;
      return random_.one_in(2) ? -EINTR : -EAGAIN;
    }
    std::size_t size = t.size;
    if (size > 4096 && random_.one_in(3)) {
      counters_.shortened += 1;
      size = 4096 * (1 + random_.below(size / 4096));
    }
    const ssize_t n = t.write ? ::pwrite(t.descriptor, t.memory, size, static_cast<off_t>(t.offset))
                              : ::pread(t.descriptor, t.memory, size, static_cast<off_t>(t.offset));
    return n < 0 ? -errno : n;
  }

  random random_, choices_{42};
  fault_counters& counters_;
  failure fail_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<weft::ooc::transfer*> waiting_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace weft_test
