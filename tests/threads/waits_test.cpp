// SPDX-License-Identifier: BSL-1.0
// What bodies wait for: nothing is lost, nobody goes on too early, and every wait ends with its run.
#include "flow/runtimes.hpp"
#include "support/child.hpp"
#include "support/random.hpp"

#include <weft/threads.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weft_test::contains;
using weft_test::on_each_runtime;

namespace {

std::uint64_t suspensions(const weft::runtime& rt) { return rt.counters().suspensions; }

/// Calls f in so many spawned bodies and in two kernel threads outside tasks.
template <class F>
void inside_and_outside(weft::runtime& rt, int bodies, F f) {
  std::thread outside[] = {std::thread(f), std::thread(f)};
  rt.run([&] {
    for (int i = 0; i < bodies; ++i) weft::spawn(f);
  });
  for (std::thread& t : outside) t.join();
}

}  // namespace

TEST_CASE("a mutex excludes bodies and kernel threads") {
  on_each_runtime([](weft::runtime& rt) {
    weft::mutex door;
    long counted = 0, tried = 0;
    inside_and_outside(rt, 6, [&] {
      for (int i = 0; i < 200; ++i) {
        if (i % 5 == 0) {
          const std::unique_lock hold(door, std::try_to_lock);
          if (hold) ++counted, ++tried;
        } else {
          const std::lock_guard hold(door);
          ++counted;
          if (i % 50 == 1) weft::this_task::sleep_for(1us);  // others wait meanwhile
        }
      }
    });
    CHECK(counted == 8 * 160 + tried);
    CHECK(suspensions(rt) > 0);
  });
}

TEST_CASE("two mutexes are locked together, in whatever order they are named") {
  on_each_runtime([](weft::runtime& rt) {
    weft::mutex a, b;
    long counted = 0;
    std::atomic<int> began{0}, inside{0}, wrong{0};
    inside_and_outside(rt, 6, [&] {
      const bool forwards = ++began % 2 == 0;
      weft::mutex &first = forwards ? a : b, &second = forwards ? b : a;
      for (int i = 0; i < 100; ++i) {
        const std::scoped_lock hold(first, second);
        wrong += ++inside != 1;
        ++counted;
        if (i % 50 == 1) weft::this_task::sleep_for(1us);  // others wait meanwhile
        --inside;
        if (i == 99) wrong += a.try_lock() || b.try_lock();
      }
    });
    CHECK(counted == 8 * 100);
    CHECK(wrong == 0);
    CHECK(a.try_lock());  // nobody has kept one
    CHECK(b.try_lock());
    a.unlock();
    b.unlock();
  });
}

TEST_CASE("who waits longest gets the mutex") {
  weft::runtime rt({.workers = 2});
  weft::mutex door;
  std::vector<int> order;
  rt.run([&] {
    door.lock();
    for (int i = 0; i < 5; ++i) {
      weft::condition<bool> begins(false);
      const std::string before = rt.describe();
      weft::spawn([&, i] {
        begins.set(true);
        const std::lock_guard hold(door);
        order.push_back(i);
      });
      begins.wait_equal(true);
      weft_test::wait_until([&] {
        weft::this_task::sleep_for(50us);
        const std::string now = rt.describe();
        std::size_t waiting = 0;
        for (std::size_t at = now.find("a mutex"); at != now.npos; at = now.find("a mutex", at + 1))
          ++waiting;
        return waiting == static_cast<std::size_t>(i) + 1;
      });
    }
    door.unlock();
  });
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("a shared mutex lets many readers in or one writer, in the order in which they came") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared_mutex door;
    std::atomic<int> readers{0}, writers{0}, wrong{0}, most{0};
    long value = 0;
    weft::barrier all(4);
    rt.run([&] {
      for (int i = 0; i < 4; ++i)
        weft::spawn([&] {
          const std::shared_lock hold(door);
          all.arrive_and_wait();  // all four are inside
          ++most;
        });
    });
    CHECK(most == 4);
    inside_and_outside(rt, 6, [&] {
      for (int i = 0; i < 100; ++i) {
        if (i % 3 == 0) {
          const std::unique_lock hold(door);
          wrong += ++writers != 1 || readers != 0;
          ++value;
          if (i % 30 == 0) weft::this_task::sleep_for(1us);
          --writers;
        } else if (i % 7 == 0) {
          const std::shared_lock hold(door, 20us);  // may leave the queue again
          if (!hold) continue;
          ++readers, wrong += writers != 0, --readers;
        } else {
          const std::shared_lock hold(door);
          ++readers;
          wrong += writers != 0;
          --readers;
        }
      }
    });
    CHECK(wrong == 0);
    CHECK(value == 8 * 34);
  });
}

TEST_CASE("a writer that gives up lets the readers behind it in") {
  weft::runtime rt({.workers = 2});
  weft::shared_mutex door;
  bool writer_got = true, reader_got = false;
  rt.run([&] {
    door.lock_shared();
    weft::condition<int> stage(0);
    weft::spawn([&] {
      stage.set(1);
      writer_got = door.try_lock_for(200ms);
    });
    stage.wait_equal(1);
    weft_test::wait_until([&] {
      weft::this_task::sleep_for(50us);
      return rt.describe().find("a shared mutex") != std::string::npos;
    });
    weft::spawn([&] {
      reader_got = door.try_lock_shared_for(2s);
      if (reader_got) door.unlock_shared();
      stage.set(2);
    });
    stage.wait_equal(2);
    door.unlock_shared();
  });
  CHECK_FALSE(writer_got);
  CHECK(reader_got);
  CHECK(door.try_lock());
  door.unlock();
}

TEST_CASE("a condition variable loses no notification") {
  on_each_runtime([](weft::runtime& rt) {
    weft::mutex door;
    weft::condition_variable filled, emptied;
    std::vector<int> queue;
    long sum = 0;
    rt.run([&] {
      for (int c = 0; c < 3; ++c)
        weft::spawn([&] {
          for (int i = 0; i < 200; ++i) {
            std::unique_lock hold(door);
            filled.wait(hold, [&] { return !queue.empty(); });
            sum += queue.back();
            queue.pop_back();
            emptied.notify_one();
          }
        });
      for (int p = 0; p < 3; ++p)
        weft::spawn([&] {
          for (int i = 0; i < 200; ++i) {
            std::unique_lock hold(door);
            emptied.wait(hold, [&] { return queue.size() < 2; });
            queue.push_back(i);
            filled.notify_one();
          }
        });
    });
    CHECK(sum == 3 * 199 * 200 / 2);
    CHECK(suspensions(rt) > 0);
  });
}

TEST_CASE("notify_all continues everybody, and a wait ends with the mutex locked") {
  on_each_runtime([](weft::runtime& rt) {
    weft::mutex door;
    weft::condition_variable changed;
    int waiting = 0, gone = 0;
    bool open = false, locked = true;
    rt.run([&] {
      for (int i = 0; i < 20; ++i)
        weft::spawn([&] {
          std::unique_lock hold(door);
          ++waiting;
          changed.wait(hold, [&] { return open; });
          locked &= hold.owns_lock() && !door.try_lock();
          ++gone;
        });
      for (bool all = false; !all;) {
        std::unique_lock hold(door);
        if ((all = waiting == 20)) open = true;
        hold.unlock();
        if (all) changed.notify_all();
        weft::this_task::sleep_for(10us);
      }
    });
    CHECK(gone == 20);
    CHECK(locked);
  });
}

TEST_CASE("who waits for a value sees it, also if it has changed again") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> value(0);
    std::array<std::atomic<int>, 10> seen{};
    rt.run([&] {
      weft::latch ready(10);
      for (int i = 0; i < 10; ++i)
        weft::spawn([&, i] {
          ready.count_down();
          seen[static_cast<std::size_t>(i)] =
              i % 2 == 0 ? value.wait_equal(5) : value.wait([](int v) { return v > 100; });
        });
      ready.wait();
      while (std::any_of(seen.begin(), seen.end(), [](const auto& s) { return s == 0; })) {
        value.set(5);
        value.update([](int& v) { v = 101; });
        value.set(0);
        weft::this_task::sleep_for(10us);
      }
    });
    for (std::size_t i = 0; i < 10; ++i) CHECK(seen[i] == (i % 2 == 0 ? 5 : 101));
    CHECK(value.get() == 0);
  });
}

TEST_CASE("one change of the value continues all who wait for it") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> value(0);
    std::atomic<int> seen{0};
    rt.run([&] {
      weft::latch ready(5);
      for (int i = 0; i < 5; ++i)
        weft::spawn([&] {
          ready.count_down();
          seen += value.wait_equal(1);
        });
      ready.wait();
      weft::this_task::sleep_for(50us);
      value.set(1);
    });
    CHECK(seen == 5);
  });
}

TEST_CASE("a predicate that throws throws where it is waited, not where the value is changed") {
  weft::runtime rt({.workers = 2});
  weft::condition<std::string> text;
  std::string caught;
  rt.run([&] {
    weft::spawn([&] {
      try {
        text.wait([](const std::string& s) { return s.at(3) == 'x'; });
      } catch (const std::out_of_range&) {
        caught = "out of range";
      }
    });
    text.set("ab");
  });
  CHECK(caught == "out of range");
}

TEST_CASE("a semaphore never lets in more than it has") {
  on_each_runtime([](weft::runtime& rt) {
    weft::semaphore permits(3);
    std::atomic<int> inside{0}, wrong{0}, got{0};
    inside_and_outside(rt, 8, [&] {
      for (int i = 0; i < 60; ++i) {
        if (i % 4 == 0 && !permits.try_acquire_for(5us)) continue;
        if (i % 4 != 0) permits.acquire();
        wrong += ++inside > 3;
        if (i % 20 == 1) weft::this_task::sleep_for(1us);
        ++got;
        --inside;
        permits.release();
      }
    });
    CHECK(wrong == 0);
    CHECK(got >= 10 * 45);
    CHECK(permits.try_acquire());
    CHECK(permits.try_acquire());
    CHECK(permits.try_acquire());
    CHECK_FALSE(permits.try_acquire());
    permits.release(3);
  });
}

TEST_CASE("who arrives at a barrier beyond its participants is told so") {
  int refused = 0;
  weft::barrier* self = nullptr;
  const auto one_more = [&] {  // before the phase has ended
    CHECK_THROWS_WITH(self->arrive(), "weft: more participants arrive at a barrier than it has");
    CHECK_THROWS_AS(self->arrive_and_wait(), weft::error);
    CHECK_THROWS_AS(self->arrive_and_wait_for(1s), weft::error);
    CHECK_THROWS_AS(self->arrive_and_drop(), weft::error);
    ++refused;
  };
  weft::barrier both(2, one_more);
  self = &both;
  weft::runtime rt({.workers = 2});
  rt.run([&] {
    for (int body = 0; body < 2; ++body)
      weft::spawn([&] {
        for (int phase = 0; phase < 3; ++phase) both.arrive_and_wait();
      });
  });
  CHECK(refused == 3);
  both.arrive_and_drop();
  both.arrive_and_drop();
  CHECK(refused == 4);
  CHECK_THROWS_AS(both.arrive(), weft::error);
}

TEST_CASE("barriers keep phases apart, and participants may leave") {
  on_each_runtime([](weft::runtime& rt) {
    constexpr int n = 7, phases = 30;
    std::atomic<int> in_phase{0}, wrong{0};
    int ended = 0;
    weft::barrier all(n, [&] {
      wrong += in_phase != (ended < phases / 2 ? n : n - 1);
      in_phase = 0;
      ++ended;
    });
    rt.run([&] {
      for (int i = 0; i < n; ++i)
        weft::spawn([&, i] {
          for (int p = 0; p < phases; ++p) {
            if (i == 0 && p == phases / 2) return all.arrive_and_drop();
            ++in_phase;
            all.arrive_and_wait();
          }
        });
    });
    CHECK(ended == phases);
    CHECK(wrong <= 1);  // in the phase where one leaves without a step
  });
}

TEST_CASE("a channel delivers every item once, in order, until it is closed and empty") {
  on_each_runtime([](weft::runtime& rt) {
    for (const std::size_t capacity : {1u, 3u, 64u}) {
      weft::channel<std::unique_ptr<int>> items(capacity);
      long sum = 0;
      std::atomic<int> pushed{0};
      weft::mutex door;
      rt.run([&] {
        weft::latch producers(3);
        for (int p = 0; p < 3; ++p)
          weft::spawn([&, p] {
            for (int i = 0; i < 50; ++i) pushed += items.push(std::make_unique<int>(p * 1000 + i));
            producers.count_down();
          });
        for (int c = 0; c < 2; ++c)
          weft::spawn([&] {
            while (auto item = items.pop()) {
              const std::lock_guard hold(door);
              sum += **item;
            }
          });
        producers.wait();
        items.close();
      });
      CHECK(pushed == 150);
      CHECK(sum == 3 * 49 * 50 / 2 + 50 * 3000);
      CHECK_FALSE(items.pop().has_value());
      auto late = std::make_unique<int>(4);
      CHECK_FALSE(items.push(std::move(late)));
      CHECK(late != nullptr);
    }
    weft::channel<int> ordered(4);
    std::vector<int> got;
    rt.run([&] {
      weft::spawn([&] {
        while (const auto item = ordered.pop()) got.push_back(*item);
      });
      for (int i = 0; i < 200; ++i) ordered.push(i);
      ordered.close();
    });
    std::vector<int> expected(200);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(got == expected);
  });
}

TEST_CASE("timed waits never end too early, and end") {
  on_each_runtime([](weft::runtime& rt) {
    const auto takes = [](std::chrono::steady_clock::duration least, const auto& f) {
      const auto start = std::chrono::steady_clock::now();
      const bool timed_out = f();
      return timed_out && std::chrono::steady_clock::now() - start >= least;
    };
    const auto soon = [] { return std::chrono::steady_clock::now() + 1ms; };
    const auto soon_in_system = [] { return std::chrono::system_clock::now() + 1ms; };  // it may be set
    weft::mutex door, held;
    weft::shared_mutex shared, read;
    weft::condition_variable never;
    weft::semaphore none(0);
    weft::latch closed(1);
    weft::condition<int> zero(0);
    weft::channel<int> full(1), empty(1);
    full.push(1);
    held.lock();
    shared.lock();
    read.lock_shared();
    const auto is_not_zero = [](int v) { return v != 0; };
    const auto refuse = [] { return false; };
    const auto times_out = [&](const auto& wait) {
      std::unique_lock hold(door);
      return wait(hold) && hold.owns_lock();
    };
    const auto all = [&] {
      CHECK(takes(1ms, [&] { return !held.try_lock_for(1ms); }));
      CHECK(takes(1ms, [&] { return !held.try_lock_until(soon()); }));
      CHECK_FALSE(held.try_lock_until(soon_in_system()));
      CHECK(takes(1ms, [&] { return !shared.try_lock_for(1ms); }));
      CHECK(takes(1ms, [&] { return !shared.try_lock_until(soon()); }));
      CHECK(takes(1ms, [&] { return !shared.try_lock_shared_for(1ms); }));
      CHECK(takes(1ms, [&] { return !shared.try_lock_shared_until(soon()); }));
      CHECK_FALSE(shared.try_lock_until(soon_in_system()));
      CHECK_FALSE(shared.try_lock_shared_until(soon_in_system()));
      CHECK(takes(1ms, [&] { return !read.try_lock_for(1ms); }));
      CHECK(takes(1ms, [&] { return !read.try_lock_until(soon()); }));
      using std::cv_status::timeout;
      CHECK(takes(
          1ms, [&] { return times_out([&](auto& hold) { return never.wait_for(hold, 1ms) == timeout; }); }));
      CHECK(takes(1ms, [&] {
        return times_out([&](auto& hold) { return never.wait_until(hold, soon()) == timeout; });
      }));
      CHECK(takes(1ms,
                  [&] { return times_out([&](auto& hold) { return !never.wait_for(hold, 1ms, refuse); }); }));
      CHECK(takes(1ms, [&] {
        return times_out([&](auto& hold) { return !never.wait_until(hold, soon(), refuse); });
      }));
      CHECK(takes(1ms, [&] { return !none.try_acquire_for(1ms); }));
      CHECK(takes(1ms, [&] { return !none.try_acquire_until(soon()); }));
      CHECK_FALSE(none.try_acquire_until(soon_in_system()));
      CHECK(takes(1ms, [&] { return !closed.wait_for(1ms); }));
      CHECK(takes(1ms, [&] { return !closed.wait_until(soon()); }));
      CHECK(takes(1ms, [&] { return !zero.wait_for(1ms, is_not_zero); }));
      CHECK(takes(1ms, [&] { return !zero.wait_until(soon(), is_not_zero); }));
      CHECK_FALSE(zero.wait_until(soon_in_system(), is_not_zero).has_value());
      CHECK(takes(1ms, [&] { return !full.push_for(2, 1ms); }));
      CHECK(takes(1ms, [&] { return !empty.pop_for(1ms); }));
      CHECK(takes(1ms,
                  [&] { return !weft::select_for(1ms, weft::on_send(full, 2), weft::on_receive(empty)); }));
      CHECK(takes(
          1ms, [&] { return !weft::select_until(soon(), weft::on_send(full, 2), weft::on_receive(empty)); }));
      CHECK(takes(1ms, [&] { return weft::this_task::sleep_for(1ms), true; }));
      CHECK(takes(1ms, [&] { return weft::this_task::sleep_until(soon()), true; }));
      CHECK_FALSE(none.try_acquire_for(-1s));
      CHECK_FALSE(full.try_push(2));
      CHECK_FALSE(empty.try_pop().has_value());
    };
    all();  // outside tasks
    rt.run(all);
    none.release();
    rt.run([&] { CHECK(none.try_acquire_for(std::chrono::hours::max())); });
    held.unlock();
    shared.unlock();
    // Who has given up keeps nobody out.
    CHECK(shared.try_lock());
    shared.unlock();
    CHECK(read.try_lock_shared());
    read.unlock_shared();
    read.unlock_shared();
    CHECK(full.pop() == 1);
    CHECK_FALSE(full.try_pop().has_value());
  });
}

TEST_CASE("a wait until a time that is long over does not wait") {
  weft::latch l(1);
  CHECK_FALSE(l.wait_until(std::chrono::steady_clock::time_point::min()));
  CHECK_FALSE(l.wait_until(std::chrono::system_clock::time_point::min()));
  CHECK_FALSE(l.wait_for(std::chrono::hours::min()));
  weft::this_task::sleep_until(std::chrono::steady_clock::time_point::min());
  l.count_down();
}

namespace {

/// A clock that stands still.
struct frozen {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<frozen>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() { return {}; }
};

}  // namespace

TEST_CASE("a wait for a clock that has been set back asks whether it is over before it waits again") {
  weft::mutex m;
  weft::condition_variable changed;
  bool ready = false;
  std::atomic<bool> begins{false};
  std::thread other([&] {
    weft_test::wait_until([&] { return begins.load(); });
    const std::unique_lock hold(m);      // when the other waits
    std::this_thread::sleep_for(100ms);  // its time is over by the clock that goes on
    ready = true;
    changed.notify_all();
  });
  {
    std::unique_lock hold(m);
    begins = true;
    CHECK(changed.wait_until(hold, frozen::now() + 10ms, [&] { return ready; }));
  }
  other.join();
}

TEST_CASE("sleeping bodies need no worker") {
  weft::runtime rt({.workers = 1});
  std::vector<int> order;
  rt.run([&] {
    for (int i = 5; i >= 1; --i)
      weft::spawn([&, i] {
        weft::this_task::sleep_for(std::chrono::milliseconds(4 * i));
        order.push_back(i);
      });
  });
  CHECK(order.size() == 5);
}

TEST_CASE("the stop of a run ends every wait, with locks in order") {
  on_each_runtime([](weft::runtime& rt) {
    weft::mutex door, held;
    weft::shared_mutex shut;
    weft::condition_variable never;
    weft::semaphore none(0);
    weft::barrier some(100);
    weft::latch closed(1);
    weft::condition<int> zero(0);
    weft::channel<int> empty(1), full(1);
    std::atomic<int> cancelled{0};
    std::atomic<bool> locked{true};
    int bodies = 0, most_waiting = 0;
    held.lock();
    shut.lock();
    full.push(1);
    const auto waits = [&](auto f) {
      ++bodies;
      weft::spawn([&, f] {
        try {
          f();
        } catch (const weft::cancelled&) {
          ++cancelled;
        }
      });
    };
    const auto waits_with_lock = [&](auto f) {
      waits([&, f] {
        std::unique_lock hold(door);
        try {
          f(hold);
        } catch (...) {
          locked = locked && hold.owns_lock() && !door.try_lock();
          throw;
        }
      });
    };
    CHECK_THROWS_AS(rt.run([&] {
      waits([&] { held.lock(); });
      waits([&] { held.try_lock_for(1h); });
      waits([&] { shut.lock(); });
      waits([&] { shut.lock_shared(); });
      waits([&] { shut.try_lock_for(1h); });
      waits([&] { shut.try_lock_shared_until(std::chrono::steady_clock::now() + 1h); });
      waits([&] { none.acquire(); });
      waits([&] { none.try_acquire_for(1h); });
      waits([&] { some.arrive_and_wait(); });
      waits([&] { closed.wait(); });
      waits([&] { closed.wait_for(1h); });
      waits([&] { zero.wait_equal(1); });
      waits([&] { zero.wait_for(1h, [](int v) { return v == 1; }); });
      waits([&] { empty.pop(); });
      waits([&] { empty.pop_for(1h); });
      waits([&] { full.push(2); });
      waits([&] { full.push_for(3, 1h); });
      waits([&] { weft::this_task::sleep_for(1h); });
      waits_with_lock([&](auto& hold) { never.wait(hold); });
      waits_with_lock([&](auto& hold) { never.wait_for(hold, 1h); });
      weft_test::wait_until([&] {
        weft::this_task::sleep_for(500us);
        const std::string now = rt.describe();
        int waiting = 0;
        for (std::size_t at = now.find(" waits for "); at != now.npos; at = now.find(" waits for ", at + 1))
          ++waiting;
        most_waiting = std::max(most_waiting, waiting);
        return waiting == bodies;
      });
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK(most_waiting == bodies);
    CHECK(cancelled == bodies);
    CHECK(locked);
    held.unlock();
    shut.unlock();
    CHECK(door.try_lock());
    door.unlock();
    CHECK(held.try_lock());
    held.unlock();
    CHECK(shut.try_lock());
    shut.unlock();
    CHECK_FALSE(closed.try_wait());
    CHECK(full.pop() == 1);
    CHECK_FALSE(full.try_pop().has_value());
  });
}

TEST_CASE("a wait that is over at once neither loses nor keeps a permit, at any moment of the time limit") {
  weft::runtime rt({.workers = 3});
  weft::semaphore permits(0);
  std::atomic<long> given{0}, got{0};
  rt.run([&] {
    for (int b = 0; b < 4; ++b)
      weft::spawn([&, b] {
        weft_test::random random(static_cast<std::uint64_t>(b) + 1);
        for (int i = 0; i < 300; ++i)
          got += permits.try_acquire_for(std::chrono::nanoseconds(random.below(20'000)));
      });
    weft::spawn([&] {
      weft_test::random random(77);
      for (int i = 0; i < 600; ++i) {
        permits.release();
        ++given;
        weft::this_task::sleep_for(std::chrono::nanoseconds(random.below(10'000)));
      }
    });
  });
  long left = 0;
  while (permits.try_acquire()) ++left;
  CHECK(given == got + left);
  CHECK(got > 0);
}

/// Runs bodies that come to wait in a cycle, and stops them. *Returns*: what the report of the runtime says.
template <class Bodies>
std::string report_of_cycle(weft::runtime& rt, const Bodies& bodies) {
  std::string report;
  CHECK_THROWS_AS(rt.run([&] {
    bodies();
    weft_test::wait_until([&] {
      weft::this_task::sleep_for(100us);
      report = rt.describe();
      return report.find("cycle") != std::string::npos;
    });
    weft::this_task::request_stop();
  }),
                  weft::cancelled);
  return report;
}

TEST_CASE("a cycle of mutexes is reported with the names of the tasks") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    weft::mutex a, b;
    weft::barrier both(2);
    const auto lock = [&](weft::mutex& first, weft::mutex& second) {
      const std::lock_guard outer(first);
      both.arrive_and_wait();
      const std::lock_guard inner(second);
    };
    const std::string report = report_of_cycle(rt, [&] {
      weft::spawn({.name = "left"}, [&] { lock(a, b); });
      weft::spawn({.name = "right"}, [&] { lock(b, a); });
    });
    CHECK_THAT(report, contains("in 'left' waits for a mutex: strand "));
    CHECK_THAT(report, contains("  cycle: strand "));
    const std::string cycle = report.substr(report.find("  cycle"));
    const std::size_t left = cycle.find(" in 'left' waits for strand "), right = cycle.find(" in 'right'");
    CHECK((left != cycle.npos && right != cycle.npos));
    CHECK(a.try_lock());
    CHECK(b.try_lock());
    CHECK(rt.describe().find("cycle") == std::string::npos);
    a.unlock();
    b.unlock();
  }
}

TEST_CASE("a cycle through shared mutexes, and a body that locks one twice, are reported") {
  weft::runtime rt({.workers = 2});
  weft::shared_mutex a, b;
  weft::barrier both(2);
  const std::string cycle = report_of_cycle(rt, [&] {
    const auto lock = [&](weft::shared_mutex& first, weft::shared_mutex& second) {
      const std::lock_guard outer(first);
      both.arrive_and_wait();
      const std::shared_lock inner(second);
    };
    weft::spawn({.name = "left"}, [&, lock] { lock(a, b); });
    weft::spawn({.name = "right"}, [&, lock] { lock(b, a); });
  });
  CHECK_THAT(cycle, contains("in 'left' waits for a shared mutex: strand "));
  CHECK_THAT(cycle, contains("in 'right' waits for a shared mutex: strand "));
  if (!WEFT_CHECKED) {  // which ends the program
    const std::string own = report_of_cycle(rt, [&] {
      weft::spawn({.name = "again"}, [&] {
        const std::lock_guard outer(a);
        const std::lock_guard inner(a);
      });
    });
    CHECK_THAT(own, contains("in 'again' waits for a shared mutex: strand "));
    const std::string twice = report_of_cycle(rt, [] {
      weft::spawn({.name = "twice"}, [] {
        weft::mutex m;
        const std::lock_guard outer(m);
        const std::lock_guard inner(m);
      });
    });
    CHECK_THAT(twice, contains("in 'twice' waits for a mutex: strand "));
  }
}

TEST_CASE("a mutex that was handed over is its next holder's in reports") {
  weft::runtime rt({.workers = 2});
  weft::mutex door;
  weft::semaphore go(0);
  std::string report;
  weft::latch first(1);
  rt.run([&] {
    weft::spawn({.name = "holder"}, [&] {
      door.lock();
      first.count_down();
      weft::this_task::sleep_for(500us);  // the second one waits meanwhile, most likely
      door.unlock();
      go.acquire();
    });
    first.wait();
    weft::spawn({.name = "second"}, [&] {
      const std::lock_guard hold(door);
      weft::spawn({.name = "third"}, [&] { const std::lock_guard again(door); });
      weft_test::wait_until([&] {
        weft::this_task::sleep_for(100us);
        report = rt.describe();
        return report.find("in 'third' waits for a mutex") != std::string::npos;
      });
      go.release();
    });
  });
  CHECK(report.find("cycle") == std::string::npos);
  CHECK_THAT(report, contains("in 'third' waits for a mutex: strand "));
}

TEST_CASE("misuse is named") {
  const auto words = [](const auto& f) {
    const auto child = weft_test::run_in_child(f);
    CHECK(child.aborted());
    return child.output;
  };
  CHECK_THAT(words([] { weft::mutex().unlock(); }),
             contains("weft: a weft::mutex is unlocked that nobody has locked"));
  CHECK_THAT(words([] { weft::mutex().lock(); }),
             contains("weft: a weft::mutex is destroyed while it is locked"));
  CHECK_THAT(words([] { weft::shared_mutex().unlock(); }),
             contains("weft: a weft::shared_mutex is unlocked that nobody has locked"));
  CHECK_THAT(words([] { weft::shared_mutex().unlock_shared(); }),
             contains("weft: a weft::shared_mutex is unlocked for reading that nobody has locked so"));
  CHECK_THAT(words([] { weft::shared_mutex().lock_shared(); }),
             contains("weft: a weft::shared_mutex is destroyed while it is locked"));
  CHECK_THAT(words([] {
               weft::mutex m;
               std::unique_lock hold(m, std::defer_lock);
               weft::condition_variable().wait(hold);
             }),
             contains("is waited for with a lock that does not own its mutex"));
  const auto destroyed = [&](const char* what, const auto& make, const auto& wait) {
    CHECK_THAT(words([&] {
                 weft::runtime rt({.workers = 2});
                 auto object = make();
                 rt.run([&] {
                   auto* const o = object.get();
                   weft::spawn([o, &wait] { wait(*o); });
                   // So does the root, but not any more when it looks.
                   weft_test::wait_until([&] {
                     weft::this_task::sleep_for(1ms);
                     return rt.describe().find(" waits for ") != std::string::npos;
                   });
                   object.reset();
                 });
               }),
               contains(std::string("weft: a ") + what + " is destroyed while somebody waits for it"));
  };
  destroyed(
      "weft::semaphore", [] { return std::make_unique<weft::semaphore>(0); },
      [](weft::semaphore& s) { s.acquire(); });
  destroyed("weft::latch", [] { return std::make_unique<weft::latch>(1); }, [](weft::latch& l) { l.wait(); });
  destroyed(
      "weft::barrier", [] { return std::make_unique<weft::barrier>(2); },
      [](weft::barrier& b) { b.arrive_and_wait(); });
  destroyed(
      "weft::condition", [] { return std::make_unique<weft::condition<int>>(0); },
      [](weft::condition<int>& c) { c.wait_equal(1); });
  destroyed(
      "weft::channel", [] { return std::make_unique<weft::channel<int>>(1); },
      [](weft::channel<int>& c) { c.pop(); });
  destroyed(
      "weft::condition_variable", [] { return std::make_unique<weft::condition_variable>(); },
      [](weft::condition_variable& c) {
        weft::mutex m;
        std::unique_lock hold(m);
        c.wait(hold);
      });

  const auto refused = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const weft::error& e) {
      return e.what();
    }
    return "nothing";
  };
  CHECK(refused([] { weft::semaphore s(-1); }) ==
        "weft: a semaphore cannot begin with a negative number of permits");
  CHECK(refused([] {
          weft::semaphore s(0);
          s.release(-1);
        }) == "weft: a negative number of permits is released to a semaphore");
  CHECK(refused([] { weft::latch l(-1); }) == "weft: a latch cannot begin with a negative count");
  CHECK(refused([] {
          weft::latch l(1);
          l.count_down(2);
        }) == "weft: a latch is counted down below zero, or up");
  CHECK(refused([] { weft::barrier b(0); }) == "weft: a barrier needs at least one participant");
  CHECK(refused([] { weft::channel<int> c(0); }) == "weft: a channel holds at least one item");
}

namespace {

/// Whether `f(limit)` has returned false (or nothing), and not before the limit.
template <class F>
bool is_over_in_time(const F& f) {
  const auto limit = std::chrono::steady_clock::now() + 1ms;
  const bool happened = static_cast<bool>(f(limit));
  return !happened && std::chrono::steady_clock::now() >= limit;
}

template <class T>
concept pushes_copies = requires(weft::channel<T>& c, const T& item) {
  c.push(item);
  c.try_push(item);
  c.push_for(item, 1ms);
  c.push_until(item, std::chrono::steady_clock::now());
};
template <class T>
concept tries_copies = requires(weft::channel<T>& c, const T& item) { c.try_push(item); };

}  // namespace

TEST_CASE("a value is waited for with a limit of time") {
  on_each_runtime([](weft::runtime& rt) {
    weft::condition<int> value(0);
    const auto over = [&] {
      CHECK(is_over_in_time([&](auto) { return value.wait_equal_for(1ms, 1); }));
      CHECK(is_over_in_time([&](auto limit) { return value.wait_equal_until(limit, 1); }));
      CHECK(is_over_in_time([&](auto) { return value.wait_not_equal_for(1ms, 0); }));
      CHECK(is_over_in_time([&](auto limit) { return value.wait_not_equal_until(limit, 0); }));
      CHECK_FALSE(value.wait_equal_until(std::chrono::system_clock::now() + 1ms, 1).has_value());
      // What is so already needs no time.
      CHECK(value.wait_equal_for(-1s, 0) == 0);
      CHECK(value.wait_not_equal_until(std::chrono::steady_clock::time_point::min(), 1) == 0);
    };
    over();  // outside tasks
    rt.run(over);
    const auto takes_turns = [&] {
      CHECK(value.wait_equal_for(1h, 1) == 1);
      value.set(2);
      CHECK(value.wait_equal_until(std::chrono::steady_clock::now() + 1h, 3) == 3);
      value.set(4);
      CHECK(value.wait_not_equal_for(1h, 4) == 5);
      value.set(6);
      CHECK(value.wait_not_equal_until(std::chrono::steady_clock::now() + 1h, 6) == 7);
    };
    const auto answers = [&] {
      for (const int v : {1, 3, 5, 7}) {
        value.set(v);
        if (v != 7) value.wait_equal(v + 1);
      }
    };
    rt.run([&] {
      weft::spawn(answers);
      takes_turns();
    });
    CHECK(suspensions(rt) > 0);
    value.set(0);
    std::thread other([&] { rt.run(answers); });
    takes_turns();  // outside tasks
    other.join();
  });
}

TEST_CASE("a channel is waited for until a time") {
  on_each_runtime([](weft::runtime& rt) {
    weft::channel<std::unique_ptr<int>> full(1), empty(1);
    full.push(std::make_unique<int>(1));
    const auto over = [&] {
      auto item = std::make_unique<int>(2);
      CHECK(is_over_in_time([&](auto limit) { return full.push_until(std::move(item), limit); }));
      CHECK(item != nullptr);  // it is as it was
      CHECK(is_over_in_time([&](auto limit) { return empty.pop_until(limit); }));
      CHECK_FALSE(full.push_until(std::move(item), std::chrono::system_clock::now() + 1ms));
      CHECK_FALSE(empty.pop_until(std::chrono::system_clock::now() + 1ms).has_value());
    };
    over();  // outside tasks
    rt.run(over);

    // What is possible needs no time.
    constexpr auto long_over = std::chrono::steady_clock::time_point::min();
    CHECK(empty.push_until(std::make_unique<int>(3), long_over));
    CHECK(*empty.pop_until(long_over).value() == 3);

    weft::channel<int> items(1);
    long sum = 0;
    rt.run([&] {
      weft::spawn([&] {
        while (const auto item = items.pop_until(std::chrono::steady_clock::now() + 1h)) sum += *item;
      });
      for (int i = 1; i <= 100; ++i) CHECK(items.push_until(i, std::chrono::steady_clock::now() + 1h));
      items.close();
    });
    CHECK(sum == 5050);
    CHECK(suspensions(rt) > 0);
  });
}

TEST_CASE("a wait until a time at a channel ends when that is closed, whatever the clock shows") {
  weft::runtime rt({.workers = 2});
  weft::channel<int> full(1), empty(1);
  full.push(1);
  bool pushed = true, popped = true;
  rt.run([&] {
    weft::spawn([&] { pushed = full.push_until(2, std::chrono::system_clock::now() + 1h); });
    weft::spawn([&] { popped = empty.pop_until(frozen::now() + 1ns).has_value(); });
    weft::this_task::sleep_for(1ms);
    full.close();
    empty.close();
  });
  CHECK_FALSE(pushed);
  CHECK_FALSE(popped);
  CHECK_FALSE(full.push_until(3, frozen::now() + 1h));
  CHECK_FALSE(empty.pop_until(frozen::now() + 1h).has_value());
  CHECK(full.pop() == 1);
  CHECK_FALSE(full.pop().has_value());
}

TEST_CASE("a channel takes copies of items, if there are such") {
  static_assert(pushes_copies<std::string>);
  static_assert(!tries_copies<std::unique_ptr<int>>);
  weft::channel<std::string> texts(4);
  const std::string text = "a text that is longer than any short one";
  const auto soon = [] { return std::chrono::steady_clock::now() + 1ms; };
  CHECK(texts.push(text));
  CHECK(texts.try_push(text));
  CHECK(texts.push_for(text, 1h));
  CHECK(texts.push_until(text, std::chrono::steady_clock::now() + 1h));
  CHECK_FALSE(texts.try_push(text));
  CHECK(is_over_in_time([&](auto) { return texts.push_for(text, 1ms); }));
  CHECK(is_over_in_time([&](auto limit) { return texts.push_until(text, limit); }));
  for (int i = 0; i < 4; ++i) CHECK(texts.pop() == text);
  CHECK_FALSE(texts.pop_until(soon()).has_value());
  texts.close();
  CHECK_FALSE(texts.try_push(text));
  CHECK_FALSE(texts.push_until(text, soon()));
  CHECK(text.size() == 40);
}

TEST_CASE("a latch is counted down and waited for with a limit of time") {
  on_each_runtime([](weft::runtime& rt) {
    weft::latch count(8);
    const auto over = [&] {
      CHECK(is_over_in_time([&](auto) { return count.arrive_and_wait_for(1ms); }));
      CHECK(is_over_in_time([&](auto limit) { return count.arrive_and_wait_until(limit, 2); }));
    };
    over();  // outside tasks
    rt.run(over);
    CHECK_FALSE(count.try_wait());
    std::atomic<int> over_the_count{0};
    rt.run([&] {
      weft::spawn([&] { over_the_count += count.arrive_and_wait_for(1h); });
      over_the_count += count.arrive_and_wait_until(std::chrono::steady_clock::now() + 1h);
    });
    CHECK(over_the_count == 2);  // what those have taken off whose time was over is off
    CHECK(count.try_wait());
    CHECK_THROWS_AS(count.arrive_and_wait_for(1h), weft::error);
    CHECK(suspensions(rt) > 0);
  });
}

TEST_CASE("a participant whose time is over has arrived, and the phase ends without it") {
  on_each_runtime([](weft::runtime& rt) {
    int ended = 0;
    weft::barrier two(2, [&] { ++ended; });
    const auto over = [&] {
      CHECK(is_over_in_time([&](auto) { return two.arrive_and_wait_for(1ms); }));
      CHECK(two.arrive_and_wait_for(0s));  // it is the last one
      CHECK(is_over_in_time([&](auto limit) { return two.arrive_and_wait_until(limit); }));
      two.arrive_and_wait();
      CHECK(is_over_in_time([&](auto) { return two.arrive_and_wait_for(1ms); }));
      CHECK(two.arrive_and_wait_until(std::chrono::steady_clock::time_point::min()));

      const weft::barrier::arrival mine = two.arrive();
      CHECK(is_over_in_time([&](auto) { return two.wait_for(mine, 1ms); }));
      CHECK(is_over_in_time([&](auto limit) { return two.wait_until(mine, limit); }));
      const weft::barrier::arrival last = two.arrive();
      for (int phase = 0; phase < 2; ++phase) {  // in the next phase, too
        two.wait(mine);
        CHECK(two.wait_for(mine, 0s));
        CHECK(two.wait_until(last, std::chrono::steady_clock::time_point::min()));
        if (phase == 0) static_cast<void>(two.arrive());
      }
      static_cast<void>(two.arrive());
    };
    over();  // outside tasks
    CHECK(ended == 5);
    rt.run(over);
    CHECK(ended == 10);
    const auto with_limit = [&](bool until) {
      for (int phase = 0; phase < 20; ++phase)
        if (!(until ? two.arrive_and_wait_until(std::chrono::steady_clock::now() + 1h)
                    : two.arrive_and_wait_for(1h)))
          return false;
      return true;
    };
    bool in_time[2] = {};
    rt.run([&] {
      weft::spawn([&] { in_time[0] = with_limit(true); });
      weft::spawn([&] { in_time[1] = with_limit(false); });
    });
    CHECK((in_time[0] && in_time[1]));
    CHECK(ended == 30);
    CHECK(suspensions(rt) > 0);
  });
}

TEST_CASE("phases end once, at any moment of the time limits of those who wait") {
  on_each_runtime([](weft::runtime& rt) {
    constexpr int n = 8, phases = 30;
    std::atomic<int> next{0}, in_phase{0}, wrong{0}, over{0};
    weft::condition<bool> some_over(false);
    int ended = 0;
    weft::barrier all(n, [&] {
      wrong += in_phase != n;
      in_phase = 0;
      ++ended;
    });
    inside_and_outside(rt, n - 2, [&] {
      const int me = next++;
      weft_test::random random(static_cast<std::uint64_t>(me) + 1);
      for (int p = 0; p < phases; ++p) {
        if (p == 0 && me == 1) some_over.wait_equal(true);
        ++in_phase;
        const auto mine = all.arrive();
        while (!all.wait_for(mine, std::chrono::nanoseconds(random.below(20'000))))
          if (over++ == 0) some_over.set(true);
        if (p == 0) some_over.set(true);  // so that nobody waits in vain if it is wrong
        wrong += ended <= p;
      }
    });
    CHECK(wrong == 0);
    CHECK(ended == phases);
    CHECK(over > 0);
  });
}

TEST_CASE("the stop of a run ends waits at a barrier, whose participants have arrived") {
  weft::runtime rt({.workers = 2});
  weft::barrier three(3);
  std::atomic<int> begun{0}, cancelled{0};
  const auto waits = [&](auto f) {
    weft::spawn([&, f] {
      ++begun;
      try {
        f();
      } catch (const weft::cancelled&) {
        ++cancelled;
      }
    });
  };
  CHECK_THROWS_AS(rt.run([&] {
    waits([&] { three.wait(three.arrive()); });
    waits([&] { three.arrive_and_wait_for(1h); });
    while (begun < 2) weft::this_task::sleep_for(500us);
    weft::this_task::request_stop();
  }),
                  weft::cancelled);
  CHECK(cancelled == 2);
  CHECK(three.arrive_and_wait_for(0s));
}
