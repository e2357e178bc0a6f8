// SPDX-License-Identifier: BSL-1.0
// Tasks that end later than their body.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

using weft_test::on_each_runtime;

namespace {

/// A thread that completes what it is given, as a device would.
class device {
 public:
  device() : thread_([this] { serve(); }) {}
  ~device() {
    {
      const std::lock_guard hold(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  template <class F>
  void submit(F then, weft::completion done, std::exception_ptr failure = nullptr) {
    {
      const std::lock_guard hold(mutex_);
      requests_.push_back({std::move(then), std::move(done), std::move(failure)});
    }
    changed_.notify_one();
  }

 private:
  struct request {
    std::function<void()> then;
    weft::completion done;
    std::exception_ptr failure;
  };
  void serve() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !requests_.empty(); });
      if (requests_.empty()) return;
      request r = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      r.then();
      if (r.failure != nullptr)
        r.done.fail(r.failure);
      else
        r.done.complete();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<request> requests_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("tasks that wait for a held task wait for its event, and run does") {
  device disk;
  on_each_runtime([&](weft::runtime& rt) {
    weft::shared<int> buffer(0);
    int seen = 0;
    rt.run([&] {
      for (int i = 1; i <= 20; ++i) {
        weft::fork(
            {.event = true},
            [&disk](int& b) { disk.submit([&b] { b = b * 2 + 1; }, weft::this_task::hold()); },
            weft::update(buffer));
        weft::fork([&seen](const int& b) { seen = b; }, weft::read(buffer));
        if (i % 7 == 0) weft::sync();
      }
    });
    CHECK(buffer.get() == (1 << 20) - 1);
    CHECK(seen == (1 << 20) - 1);
  });
}

TEST_CASE("many events in one large frame") {
  device disk;
  on_each_runtime([&](weft::runtime& rt) {
    std::deque<weft::shared<int>> cells;
    for (int i = 0; i < 200; ++i) cells.emplace_back(0);
    rt.run([&] {
      for (int k = 0; k < 2; ++k)
        for (auto& c : cells)
          weft::fork(
              {.event = true}, [&disk](int& v) { disk.submit([&v] { ++v; }, weft::this_task::hold()); },
              weft::update(c));
    });
    for (auto& c : cells) CHECK(c.get() == 2);
  });
}

TEST_CASE("an event that fails is an exception at its place") {
  device disk;
  on_each_runtime([&](weft::runtime& rt) {
    bool ran = false;
    weft::shared<int> x(0);
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork(
          {.event = true},
          [&disk](int&) {
            disk.submit([] {}, weft::this_task::hold(),
                        std::make_exception_ptr(std::runtime_error("disk on fire")));
          },
          weft::update(x));
      weft::fork([&ran](int&) { ran = true; }, weft::update(x));
    }),
                    std::runtime_error);
    CHECK_FALSE(ran);
    CHECK(rt.run([] { return 7; }) == 7);
  });
}

TEST_CASE("a completion may end before its body, twice, or by its destructor") {
  on_each_runtime([&](weft::runtime& rt) {
    weft::shared<int> x(0);
    rt.run([&] {
      weft::fork(
          {.event = true},
          [](int& v) {
            auto a = weft::this_task::hold();
            a.complete();
            a.complete();
            auto b = weft::this_task::hold();
            auto c = std::move(b);
            ++v;
          },
          weft::update(x));
      weft::fork([](int& v) { v *= 10; }, weft::update(x));
    });
    CHECK(x.get() == 10);
  });
}

TEST_CASE("runtimes may end right after the last event") {
  device disk;
  for (int i = 0; i < 50; ++i) {
    weft::runtime rt({.workers = 2});
    rt.run([&] { weft::fork({.event = true}, [&disk] { disk.submit([] {}, weft::this_task::hold()); }); });
  }
}
