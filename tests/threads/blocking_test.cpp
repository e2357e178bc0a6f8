// SPDX-License-Identifier: BSL-1.0
// Calls that block their kernel thread: other tasks go on, and results and exceptions come back.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <weft/threads.hpp>

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using weft::this_task::blocking;
using weft_test::contains;
using weft_test::on_each_runtime;

namespace {

struct pipe_ends {
  pipe_ends() { REQUIRE(pipe(end) == 0); }
  ~pipe_ends() { close(end[0]), close(end[1]); }
  int end[2];
};

}  // namespace

TEST_CASE("other tasks go on while a body waits in a system call") {
  on_each_runtime([](weft::runtime& rt) {
    pipe_ends pipe;
    char got = 0;
    bool slept = false, was_read = false, written = false;
    rt.run([&] {
      weft::spawn([&] { was_read = blocking([&] { return read(pipe.end[0], &got, 1); }) == 1; });
      weft::spawn([&] {
        const timespec moment{0, 100'000};
        slept = blocking([&] { return nanosleep(&moment, nullptr); }) == 0;
      });
      weft::spawn([&] {
        weft::this_task::sleep_for(std::chrono::microseconds(100));  // most likely the other reads already
        written = write(pipe.end[1], "x", 1) == 1;
      });
    });
    CHECK(got == 'x');
    CHECK((slept && was_read && written));
    CHECK(rt.counters().suspensions >= 1);
  });
}

TEST_CASE("as many calls block at the same time as bodies make them, with one worker") {
  weft::runtime rt({.workers = 1});
  for (int round = 0; round < 3; ++round) {
    constexpr int n = 20;
    std::barrier all(n);  // of the standard: it blocks kernel threads
    int ended = 0;
    rt.run([&] {
      for (int i = 0; i < n; ++i)
        weft::spawn([&] {
          blocking([&] { all.arrive_and_wait(); });
          ++ended;  // one worker: no race
        });
    });
    CHECK(ended == n);
  }
}

TEST_CASE("a blocking call runs where the program may, also if workers are pinned") {
  const auto processors = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  };
  const int of_program = processors();
  if (of_program < 2) return;
  weft::runtime rt({.workers = 1, .pinning = weft::pinning::compact});
  int of_worker = 0, of_call = 0;
  rt.run([&] {
    of_worker = processors();
    of_call = blocking(processors);
  });
  CHECK(of_worker == 1);
  CHECK(of_call == of_program);
}

namespace {

/// Gives itself back to a pool when it dies.
struct pooled {
  weft::mutex* pool;
  std::vector<long>* returned;
  long value = 0;
  pooled(weft::mutex& m, std::vector<long>& r) : pool(&m), returned(&r) {}
  pooled(pooled&& other) noexcept
      : pool(std::exchange(other.pool, nullptr)), returned(other.returned), value(other.value) {}
  ~pooled() {
    if (pool == nullptr) return;
    const std::lock_guard hold(*pool);
    if (value % 8 == 0) weft::this_task::sleep_for(std::chrono::microseconds(100));  // others wait meanwhile
    returned->push_back(value);
  }
};

}  // namespace

TEST_CASE("destructors of shared values may wait, and other workers go on with their tasks") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    weft::runtime rt({.workers = workers, .inlining = false});
    weft::mutex pool;
    std::vector<long> returned;
    rt.run([&] {
      for (long i = 0; i < 400; ++i)
        weft::fork([&pool, &returned, i] {
          weft::shared<pooled> b(pooled(pool, returned));
          weft::fork([i](pooled& x) { x.value = i; }, weft::update(b));
        });
    });
    CHECK(returned.size() == 400);
    CHECK(std::accumulate(returned.begin(), returned.end(), 0L) == 400 * 399 / 2);
  }
}

TEST_CASE("what a blocking call returns or throws comes back") {
  const auto calls = [] {
    CHECK(*blocking([] { return std::make_unique<int>(3); }) == 3);
    int value = 4;
    int& same = blocking([&]() -> int& { return value; });
    CHECK(&same == &value);
    CHECK(*blocking([p = std::make_unique<int>(5)]() mutable { return std::move(p); }) == 5);
    std::string text = "nothing";
    try {
      blocking([]() -> int { throw std::runtime_error("refused"); });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    CHECK(text == "refused");
    CHECK(blocking([] {
            close(-1);
            return errno;
          }) == EBADF);
  };
  calls();
  on_each_runtime([&](weft::runtime& rt) { rt.run(calls); });
}

TEST_CASE("a blocking call keeps its worker free, not its kernel thread") {
  weft::runtime rt({.workers = 1});
  long worker = 0, other = 0;
  rt.run([&] {
    worker = weft_test::kernel_thread();
    other = blocking([] { return weft_test::kernel_thread(); });
    CHECK(weft_test::kernel_thread() == worker);
  });
  CHECK(other != worker);
  const long here = weft_test::kernel_thread();
  CHECK(blocking([] { return weft_test::kernel_thread(); }) == here);
}

TEST_CASE("a blocking call ends by itself when its run is stopped, and appears in reports") {
  weft::runtime rt({.workers = 2});
  pipe_ends pipe;
  std::string report;
  char got = 0;
  bool went_on = false, written = false;
  CHECK_THROWS_AS(rt.run([&] {
    weft::spawn({.name = "reader"},
                [&] { went_on = blocking([&] { return read(pipe.end[0], &got, 1); }) == 1 && got == 'y'; });
    weft_test::wait_until([&] {
      weft::this_task::sleep_for(std::chrono::microseconds(100));
      report = rt.describe();
      return report.find("a call that may block") != std::string::npos;
    });
    weft::this_task::request_stop();
    written = write(pipe.end[1], "y", 1) == 1;
  }),
                  weft::cancelled);
  CHECK((went_on && written));
  CHECK_THAT(report, contains("in 'reader' waits for a call that may block"));
}

TEST_CASE("a blocking call is no task") {
  const auto child = weft_test::run_in_child([] {
    weft::runtime rt({.workers = 1});
    rt.run([] { blocking([] { weft::spawn([] {}); }); });
  });
  CHECK(child.aborted());
  CHECK_THAT(child.output, contains("weft: spawn() was called outside a task"));
}
