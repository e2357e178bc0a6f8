// SPDX-License-Identifier: BSL-1.0
// Threads that go on in other processes: where their bodies run, what comes home, and what may go wrong.
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;

namespace {

std::atomic<int> reached{0};

template <class Condition>
bool holds_soon(Condition c) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!c() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return c();
}

std::uint64_t sent(const weft::thread_cluster& c) {
  std::uint64_t all = 0;
  for (int i = 0; i < c.size(); ++i) all += c.counters(i).threads_sent;
  return all;
}
std::uint64_t received(const weft::thread_cluster& c) {
  std::uint64_t all = 0;
  for (int i = 0; i < c.size(); ++i) all += c.counters(i).threads_received;
  return all;
}

/// Goes round all processes, and adds up their numbers.
struct tour {
  int rounds = 0;
  int step = 0;
  long sum = 0;
  std::vector<int> visited{};

  void operator()() {
    const int all = weft::this_thread::processes();
    for (; step < rounds * all; ++step) {
      if (weft::this_thread::process() != step % all) weft::this_thread::migrate(step % all);
      visited.push_back(weft::this_thread::process());
      sum += weft::this_thread::process() + 1;
    }
  }
};

bool is_right(const tour& t, int processes) {
  const long all = processes;
  bool right =
      t.sum == t.rounds * all * (all + 1) / 2 && t.visited.size() == static_cast<std::size_t>(t.step);
  for (std::size_t i = 0; i < t.visited.size(); ++i) right &= t.visited[i] == static_cast<int>(i) % processes;
  return right;
}

/// Calls `at` in the process `to`, with itself.
template <int To, class F>
struct visit {
  int calls = 0;
  void operator()() {
    if (weft::this_thread::process() != To) weft::this_thread::migrate(To);
    ++calls;
    F()(*this);
  }
};

/// What run ends by.
template <class F>
std::string failure(weft::thread_cluster& c, F f) {
  try {
    c.run(f);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a thread goes round all processes and finds its state there", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u})
    for (int processes = 1; processes <= 4; ++processes) {
      weft::thread_cluster c(processes, {}, {.disorder = disorder});
      tour ended;
      c.run([&] {
        weft::spawn(weft::migratable, tour{.rounds = 100}, [&](tour& t) { ended = std::move(t); });
      });
      CHECK(ended.rounds == 100);
      CHECK(is_right(ended, processes));
      // It does not go to a process where it is, and comes home on each way between two others.
      CHECK(received(c) == 100u * static_cast<unsigned>(processes - 1));
      CHECK(c.counters(0).threads_sent == received(c));
    }
}

TEST_CASE("many threads go round at once", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u})
    for (const unsigned workers : {1u, 2u}) {
      weft::thread_cluster c(3, {.runtime = {.workers = workers}}, {.disorder = disorder});
      std::atomic<int> right{0};
      c.run([&] {
        for (int i = 0; i < 64; ++i)
          weft::spawn(weft::migratable, {.name = "tour", .stack_size = 256 << 10}, tour{.rounds = 10},
                      [&](const tour& t) { right += is_right(t, 3); });
      });
      CHECK(right == 64);
      CHECK(received(c) == 64u * 20);
    }
}

TEST_CASE("a thread is at home where it was spawned", "[cluster]") {
  weft::thread_cluster c(3);
  reached = 0;
  const int right = c.run([] {
    weft::shared<int> out(0);
    weft::fork(
        [](weft::write<int> n) {
          reached = 1;
          int done = 0;
          weft::spawn(weft::migratable, tour{.rounds = 5}, [&](const tour& t) { done = is_right(t, 3); });
          weft::sync();
          n = done;
        },
        out);
    holds_soon([] { return reached == 1; });  // so another process has it
    weft::sync();
    return out.get();
  });
  CHECK(right == 1);
  CHECK(c.counters(0).threads_sent == 0);
  CHECK(sent(c) >= 10);
  CHECK(c.counters(0).threads_received >= 4);
}

namespace {
/// Forks tasks that refer to it before it goes.
struct with_children {
  std::vector<int> made{};
  int place = 0;
  void operator()() {
    while (place < 20) {
      const int begin = 8 * place;
      made.resize(static_cast<std::size_t>(begin + 8));
      for (int i = begin; i < begin + 8; ++i)
        weft::fork([this, i] { made[static_cast<std::size_t>(i)] = i; });
      weft::this_thread::migrate(++place % 2);
    }
  }
};
}  // namespace

TEST_CASE("a thread waits for the tasks that it has forked before it goes", "[cluster]") {
  weft::thread_cluster c(2, {.runtime = {.workers = 2}});
  std::vector<int> made;
  c.run([&] { weft::spawn(weft::migratable, with_children{}, [&](with_children& w) { made = w.made; }); });
  REQUIRE(made.size() == 160);
  int right = 0;
  for (std::size_t i = 0; i < made.size(); ++i) right += made[i] == static_cast<int>(i);
  CHECK(right == 160);
  CHECK(received(c) == 10);
}

namespace {
std::atomic<int> children{0}, left_in_order{0};
/// Leaves a body whose tasks still refer to what is on its stack.
struct with_locals {
  int calls = 0;
  void operator()() {
    if (++calls == 3) return;
    struct array {
      int of[8] = {};
      ~array() { left_in_order += children == 8; }
    } local;
    children = 0;
    for (int& i : local.of)
      weft::fork([&i] {
        std::this_thread::sleep_for(1ms);
        i = ++children;
      });
    weft::this_thread::migrate(calls % 2);
  }
};
}  // namespace

TEST_CASE("destructors run when a body is left, behind its tasks", "[cluster]") {
  weft::thread_cluster c(2, {.runtime = {.workers = 2}});
  left_in_order = 0;
  c.run([] { weft::spawn(weft::migratable, with_locals{}); });
  CHECK(left_in_order == 2);
  CHECK(received(c) == 1);
}

namespace {
std::atomic<bool> over{false};
}  // namespace

TEST_CASE("a thread waits for a worker in the process to which it has gone", "[cluster]") {
  weft::thread_cluster c(2, {.runtime = {.workers = 2}});
  reached = 0;
  over = false;
  const auto stays = [](auto&) {
    ++reached;
    holds_soon([] { return over.load(); });
  };
  const auto passes = [](auto&) {};
  int calls = 0;
  c.run([&] {
    for (int i = 0; i < 2; ++i) weft::spawn(weft::migratable, visit<1, decltype(stays)>{});
    holds_soon([] { return reached == 2; });
    weft::spawn(weft::migratable, visit<1, decltype(passes)>{}, [&](const auto& v) { calls = v.calls; });
    std::this_thread::sleep_for(30ms);  // longer than a task waits there that has come ahead
    over = true;
  });
  CHECK(calls == 1);
  CHECK(received(c) == 3);
}

TEST_CASE("what a thread throws elsewhere is thrown at home", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u}) {
    weft::thread_cluster c(3, {}, {.disorder = disorder});
    const auto thrower = [](auto& v) { throw std::out_of_range("in call " + std::to_string(v.calls)); };
    bool waited = false;
    CHECK_THROWS_AS(c.run([&] {
      weft::spawn(weft::migratable, visit<2, decltype(thrower)>{.calls = 7});
      weft::latch never(1);
      try {
        never.wait();  // ends, as it does for other spawned bodies
      } catch (const weft::cancelled&) {
        waited = true;
        throw;
      }
    }),
                    std::out_of_range);
    CHECK(waited);
    CHECK(failure(c, [&] { weft::spawn(weft::migratable, visit<1, decltype(thrower)>{.calls = 7}); }) ==
          "in call 8");
    CHECK(received(c) == 2);
    CHECK(c.run([] { return 3; }) == 3);
  }
}

TEST_CASE("a stop reaches a thread elsewhere, and one there stops the run", "[cluster]") {
  for (const std::uint32_t disorder : {0u, 1u, 2u}) {
    weft::thread_cluster c(2, {.runtime = {.workers = 2}}, {.disorder = disorder});
    static std::atomic<bool> saw_stop;
    saw_stop = false;
    reached = 0;
    const auto stays = [](auto&) {
      reached = 1;
      saw_stop = holds_soon([] { return weft::this_task::stop_token().stop_requested(); });
    };
    CHECK_THROWS_AS(c.run([&] {
      weft::spawn(weft::migratable, visit<1, decltype(stays)>{});
      weft::spawn([] {
        holds_soon([] { return reached == 1; });
        weft::this_task::request_stop();
      });
    }),
                    weft::cancelled);
    CHECK(saw_stop);
    // The other way round, and what it wants to do then is not done.
    reached = 0;
    const auto stops = [](auto& v) {
      ++reached;
      weft::this_task::request_stop();
      v.calls = 0;
      weft::this_thread::migrate(0);
    };
    CHECK_THROWS_AS(c.run([&] { weft::spawn(weft::migratable, visit<1, decltype(stops)>{}); }),
                    weft::cancelled);
    CHECK(reached == 1);
    CHECK(received(c) == 2);
    CHECK(c.run([] { return 3; }) == 3);
  }
}

namespace {
std::atomic<bool> no_memory{false};
/// Finds no memory in other processes while there is to be none.
struct refused {
  int to = 1;
  std::vector<int> where{};
  std::string why{};
  std::vector<char> load{};

  template <class Archive>
  void serialize(Archive& a) {
    if constexpr (std::is_same_v<Archive, weft::remote::reader>)
      if (no_memory.exchange(false)) throw std::bad_alloc();
    a(to, where, why, load);
  }
  void operator()() {
    where.push_back(weft::this_thread::process());
    while (to != 0 && weft::this_thread::process() != to) {
      try {
        weft::this_thread::migrate(to);
      } catch (const weft::error& e) {
        why = e.what();
        load.clear();
        to = (to + 1) % 3;
      }
    }
  }
};
}  // namespace

TEST_CASE("a thread that another process cannot take goes on at home", "[cluster]") {
  weft::thread_cluster c(3);
  refused ended;
  const auto start = [&ended](refused r) {
    return [&ended, r] { weft::spawn(weft::migratable, r, [&](refused& e) { ended = std::move(e); }); };
  };
  no_memory = true;
  c.run(start({}));
  CHECK(ended.where == std::vector{0, 0, 2});
  CHECK(ended.why.find("process 1 cannot take the thread") != std::string::npos);
  CHECK(c.counters(1).memory_refused == 1);
  CHECK(c.counters(0).threads_sent == 2);
  CHECK(received(c) == 1);
  // One that is too long does not even leave.
  weft::thread_cluster small(3, {.largest_task = 10000});
  small.run(start({.load = std::vector<char>(20000)}));
  CHECK(ended.where == std::vector{0, 0, 2});
  CHECK(ended.why.find("process 1 cannot take the thread") != std::string::npos);
  CHECK(small.counters(0).threads_sent == 1);
}

namespace {
/// Wants to leave when the other process is known to be silent.
struct late {
  int called = 0;
  void operator()() {
    ++called;
    if (weft::this_thread::process() == 1) return;
    holds_soon([] { return over.load(); });
    weft::this_thread::migrate(1);
  }
};
}  // namespace

TEST_CASE("the thread that a silent process has is lost, and so are those that want to leave", "[cluster]") {
  weft::thread_cluster c(2, {.runtime = {.workers = 2}, .silence = 200ms}, {.mute = 1, .mute_after = 40});
  reached = 0;
  over = false;
  bool came_home = false;
  const auto stays = [](auto&) {
    reached = 1;
    holds_soon([] { return over.load(); });
  };
  const std::string why = failure(c, [&] {
    weft::spawn(weft::migratable, visit<1, decltype(stays)>{}, [&](const auto&) { came_home = true; });
    weft::spawn(weft::migratable, late{}, [&](const late&) { came_home = true; });
    weft::spawn([&] {
      try {
        weft::latch never(1);
        never.wait();  // until the first one is lost
      } catch (const weft::cancelled&) {
        over = true;
        throw;
      }
    });
  });
  CHECK(reached == 1);
  CHECK(over);
  CHECK_FALSE(came_home);
  CHECK(why.find("has not answered for 200 ms") != std::string::npos);
}

TEST_CASE("wrong calls of migrate are exceptions, and the body goes on", "[cluster]") {
  weft::thread_cluster c(2);
  const auto outside = [] {
    try {
      weft::this_thread::migrate(0);
    } catch (const weft::error& e) {
      return std::string(e.what()).find("outside a body that was spawned") != std::string::npos;
    }
    return false;
  };
  CHECK(outside());
  CHECK(c.run([&] { return outside(); }));
  const auto wrong = [](auto&) {
    for (const int to : {-1, 2, 1000}) try {
        weft::this_thread::migrate(to);
      } catch (const weft::error& e) {
        reached += std::string(e.what()).find("a thread cannot go to process " + std::to_string(to)) == 6;
      }
  };
  reached = 0;
  c.run([&] { weft::spawn(weft::migratable, visit<1, decltype(wrong)>{}); });
  CHECK(reached == 3);
  // A task of the body is not the body, wherever it is executed.
  const auto child = [](auto&) {
    for (int i = 0; i < 20; ++i)
      weft::fork({.name = "child"}, [] {
        try {
          weft::this_thread::migrate(0);
        } catch (const weft::error&) {
          ++reached;
        }
      });
  };
  reached = 0;
  c.run([&] { weft::spawn(weft::migratable, visit<1, decltype(child)>{}); });
  CHECK(reached == 20);
  const auto swallowed = [](auto&) {
    try {
      weft::this_thread::migrate(0);
    } catch (...) {
    }
  };
  CHECK(failure(c, [&] {
          weft::spawn(weft::migratable, visit<1, decltype(swallowed)>{});
        }).find("has to rethrow it") != std::string::npos);
}

TEST_CASE("without other processes a thread stays, and begins anew", "[cluster]") {
  weft::runtime rt{{.workers = 1}};
  int calls = 0;
  rt.run([&] {
    CHECK(weft::this_thread::processes() == 1);
    CHECK(weft::this_thread::process() == 0);
    const auto again = [](auto& v) {
      if (v.calls < 5) weft::this_thread::migrate(0);
    };
    weft::spawn(weft::migratable, visit<0, decltype(again)>{}, [&](const auto& v) { calls = v.calls; });
  });
  CHECK(calls == 5);
}
