// SPDX-License-Identifier: BSL-1.0
// Engines that do what a test wants: one that follows a script, and one that does less than it is asked,
// later, in another order, or nothing at all.
#pragma once

#include "support/random.hpp"

#include <weft/ooc/io_engine.hpp>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft_test {

/// Does the first `size` bytes of a transfer. *Returns*: how many were done, or a negative errno value.
inline long transfer_now(const weft::ooc::transfer& t, std::size_t size) {
  const ssize_t n = t.write ? ::pwrite(t.descriptor, t.memory, size, static_cast<off_t>(t.offset))
                            : ::pread(t.descriptor, t.memory, size, static_cast<off_t>(t.offset));
  return n < 0 ? -errno : n;
}
inline long transfer_now(const weft::ooc::transfer& t) { return transfer_now(t, t.size); }

/// What an engine does.
struct engine_script {
  std::function<long(const weft::ooc::transfer&)> result;  ///< a number of bytes, or a negative errno value
  std::function<bool()> takes = {};                        ///< whether it takes one more
  std::function<void()> pauses = {};                       ///< before each transfer
  std::function<std::size_t(std::size_t)> chooses = {};    ///< the next one, of so many that wait
};

/// One thread does the transfers, one after the other.
class scripted_engine final : public weft::ooc::io_engine {
 public:
  explicit scripted_engine(engine_script script) : script_(std::move(script)), thread_([this] { work_(); }) {}
  ~scripted_engine() override {
    {
      const std::lock_guard hold(mutex_);
      over_ = true;
    }
    more_.notify_all();
    thread_.join();
  }
  const char* name() const noexcept override { return "scripted"; }
  bool start(weft::ooc::transfer& t) noexcept override {
    {
      const std::lock_guard hold(mutex_);
      if (script_.takes && !script_.takes()) return false;
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
      if (script_.pauses) {  // others may come meanwhile
        hold.unlock();
        script_.pauses();
        hold.lock();
      }
      const std::size_t which = script_.chooses ? script_.chooses(waiting_.size()) : 0;
      weft::ooc::transfer& t = *waiting_[which];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
      hold.unlock();
      t.ended(t, script_.result(t));
      hold.lock();
    }
  }

  engine_script script_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<weft::ooc::transfer*> waiting_;
  bool over_ = false;
  std::thread thread_;
};

inline std::unique_ptr<scripted_engine> scripted(engine_script script) {
  return std::make_unique<scripted_engine>(std::move(script));
}

/// What happened to transfers.
struct fault_counters {
  std::atomic<int> shortened{0}, interrupted{0}, refused{0}, delayed{0}, reordered{0}, failed{0};
};

/// An engine that does the transfers badly. `fail(transfer)` gives the errno value that one fails with, or 0.
inline std::unique_ptr<scripted_engine> faulty_engine(
    std::uint64_t seed, fault_counters& counters, std::function<int(const weft::ooc::transfer&)> fail = {}) {
  const auto of_thread = std::make_shared<random>(seed);
  return scripted(
      {.result = [of_thread, &counters, fail = std::move(fail)](const weft::ooc::transfer& t) -> long {
         random& number = *of_thread;
         if (fail)
           if (const int why = fail(t)) {
             counters.failed += 1;
             return -why;
           }
         if (number.one_in(8)) {
           counters.interrupted += 1;
           return number.one_in(2) ? -EINTR : -EAGAIN;
         }
         std::size_t size = t.size;
         if (size > 4096 && number.one_in(3)) {
           counters.shortened += 1;
           size = 4096 * (1 + number.below(size / 4096));
         }
         return transfer_now(t, size);
       },
       .takes =
           [choices = random(42), &counters]() mutable {
             const bool refused = choices.one_in(6);
             if (refused) counters.refused += 1;
             return !refused;
           },
       .pauses =
           [of_thread, &counters] {
             if (!of_thread->one_in(4)) return;
             counters.delayed += 1;
             std::this_thread::sleep_for(std::chrono::microseconds(of_thread->below(300)));
           },
       .chooses =
           [of_thread, &counters](std::size_t waiting) {
             const std::size_t which = of_thread->below(waiting);
             if (which != 0) counters.reordered += 1;
             return which;
           }});
}

}  // namespace weft_test
