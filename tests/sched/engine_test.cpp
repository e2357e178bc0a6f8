// SPDX-License-Identifier: BSL-1.0
// The engine without types and fork: runs of closures made by hand, contexts, life and death of workers.
#include "sched/hand_made.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/record.hpp"

#include <weft/sched/definitions.hpp>
#include <weft/sched/run.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using weft::runtime_options;
using weft::sched::engine;
using weft::sched::run_call;
using weft::sched::strand;
using weft_test::made_closure;
using weft_test::updates;
using weft_test::writes;

namespace {

long kernel_thread() { return syscall(SYS_gettid); }

runtime_options options(unsigned workers, bool inlining = false) {
  return {.workers = workers, .stack_size = 128 * 1024, .inlining = inlining};
}

void run(engine& e, std::function<void()> body, weft::sched::task_options o = {},
         const std::stop_token& stop = {}) {
  run_call call(e);
  call.execute(weft_test::make_closure(call.memory(), {}, std::move(body), o), stop);
}

/// Forks a task of the running one; always deferred.
void fork(std::initializer_list<weft_test::access> rights, std::function<void()> body,
          weft::sched::task_options o = {}) {
  strand& s = weft::sched::current();
  if (classify_fork(s) == weft::sched::fork_action::drop) return;
  if (!s.pending()) open_frame(s);
  defer(s, weft_test::make_closure(s.closures, rights, std::move(body), o));
}

void join() { weft::sched::sync(weft::sched::current()); }

/// Keeps the worker busy until the predicate holds; false if that takes too long.
template <class P>
bool wait_until(P&& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

weft::counters counters(const engine& e) {
  weft::counters sum;
  for (const auto& w : e.workers) w->counters().add_to(sum);
  return sum;
}

void nothing(void*) noexcept {}

}  // namespace

TEST_CASE("contexts are made when needed and used again, the last given back first") {
  weft::sched::context_pool pool(64 * 1024, nothing);
  CHECK(pool.count() == 0);
  auto& a = pool.take();
  auto& b = pool.take();
  CHECK(&a != &b);
  CHECK(pool.count() == 2);
  pool.put(a);
  pool.put(b);
  CHECK(&pool.take() == &b);
  CHECK(&pool.take() == &a);
  CHECK(pool.count() == 2);
  pool.put(a);
  pool.put(b);
}

TEST_CASE("forks may nest on the upper half of a context's stack") {
  weft::sched::context_pool pool(64 * 1024, nothing);
  auto& a = pool.take();
  auto& b = pool.take();
  const auto privatized =
      a.inline_limit > b.inline_limit ? a.inline_limit - b.inline_limit : b.inline_limit - a.inline_limit;
  CHECK(privatized >= 64 * 1024);
  pool.put(a);
  pool.put(b);
}

TEST_CASE("of many idle contexts some are given back to the system") {
  weft::sched::context_pool pool(64 * 1024, nothing);
  std::vector<weft::sched::context_slot*> all;
  for (int i = 0; i < 200; ++i) all.push_back(&pool.take());
  CHECK(pool.count() == 200);
  for (auto* c : all) pool.put(*c);
  all.clear();
  for (int i = 0; i < 200; ++i) all.push_back(&pool.take());
  CHECK(pool.count() > 200);  // some had been destroyed
  CHECK(pool.count() < 400);  // and others kept
  for (auto* c : all) pool.put(*c);
}

TEST_CASE("a run executes its root on a worker") {
  engine e(options(1));
  const long here = kernel_thread();
  long there = 0;
  bool task = false;
  run(e, [&] {
    there = kernel_thread();
    task = !is_outside(weft::sched::current());
  });
  CHECK(there != 0);
  CHECK(there != here);
  CHECK(task);
  CHECK(is_outside(weft::sched::current()));
}

TEST_CASE("closures made by hand run in the order of their rights, stolen or not") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    INFO("workers " << workers);
    engine e(options(workers));
    for (int round = 0; round < 50; ++round) {
      std::vector<int> data(8), expected(8);
      run(e, [&] {
        for (int i = 0; i < 200; ++i) {
          int& x = data[static_cast<std::size_t>(i % 8)];
          expected[static_cast<std::size_t>(i % 8)] =
              3 * expected[static_cast<std::size_t>(i % 8)] % 1000 + i;
          fork({updates(x)}, [&x, i] {
            if (i % 16 == 0) std::this_thread::yield();
            x = 3 * x % 1000 + i;
          });
        }
      });
      CHECK(data == expected);
    }
    CHECK(counters(e).deferred == 50 * 200);
  }
}

TEST_CASE("a closure is stolen while its parent is busy, and the strand parks on it") {
  engine e(options(2));
  std::atomic<bool> late{false};
  for (int i = 0; i < 20; ++i) {
    long thief = 0, owner = 0;
    std::atomic<bool> started{false};
    run(e, [&] {
      owner = kernel_thread();
      const auto parkings = counters(e).parkings;
      fork({}, [&, parkings] {
        thief = kernel_thread();
        started = true;
        if (!wait_until([&] { return counters(e).parkings > parkings; })) late = true;
      });
      if (!wait_until([&] { return started.load(); })) late = true;
    });
    CHECK(thief != owner);
  }
  CHECK_FALSE(late);
  CHECK(counters(e).steals >= 20);
  CHECK(counters(e).parkings >= 20);
}

TEST_CASE("a body is suspended in sync while a thief runs its child") {
  engine e(options(2));
  std::atomic<bool> late{false};
  int after = 0;
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> started{false};
    run(e, [&] {
      const auto suspensions = counters(e).suspensions;
      int result = 0;
      fork({writes(result)}, [&, suspensions] {
        started = true;
        if (!wait_until([&] { return counters(e).suspensions > suspensions; })) late = true;
        result = 1;
      });
      if (!wait_until([&] { return started.load(); })) late = true;
      join();
      after += result;
    });
  }
  CHECK_FALSE(late);
  CHECK(after == 20);
  CHECK(counters(e).suspensions >= 20);
}

TEST_CASE("a run's exception leaves execute") {
  engine e(options(2));
  CHECK_THROWS_AS(run(e, [] { throw std::out_of_range("x"); }), std::out_of_range);
  CHECK_THROWS_AS(run(e, [] { fork({}, [] { throw 3; }); }), int);
  bool ran = false;
  run(e, [&] { ran = true; });
  CHECK(ran);
}

TEST_CASE("a run that is stopped before it starts drops its root") {
  engine e(options(2));
  std::stop_source source;
  source.request_stop();
  made_closure::dropped = 0;
  bool ran = false;
  CHECK_THROWS_AS(run(e, [&] { ran = true; }, {}, source.get_token()), weft::cancelled);
  CHECK_FALSE(ran);
  CHECK(made_closure::dropped == 1);
  CHECK(counters(e).dropped == 1);
}

TEST_CASE("a call of run that executes nothing gives everything back") {
  engine e(options(1));
  for (int i = 0; i < 100; ++i) {
    run_call call(e);
    static_cast<void>(call.memory().allocate(100'000));
  }
  run(e, [&] {
    for (int i = 0; i < 100; ++i) {
      run_call nested(e);
      static_cast<void>(nested.memory().allocate(100));
    }
  });
  CHECK(e.contexts.count() <= 3);
  bool ran = false;
  run(e, [&] { ran = true; });
  CHECK(ran);
}

TEST_CASE("strands are used again") {
  engine e(options(1));
  std::set<const strand*> seen;
  for (int i = 0; i < 100; ++i) run(e, [&] { seen.insert(&weft::sched::current()); });
  CHECK(seen.size() <= 2);  // a caller may return just before the strand does
}

TEST_CASE("several threads run at once") {
  engine e(options(2));
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 100; ++i) {
        std::vector<int> seen(4);
        run(e, [&] {
          for (int k = 0; k < 4; ++k)
            fork({writes(seen[static_cast<std::size_t>(k)])},
                 [&seen, k, c] { seen[static_cast<std::size_t>(k)] = c + k; });
        });
        wrong += seen != std::vector<int>{c, c + 1, c + 2, c + 3};
      }
    });
  for (std::thread& t : callers) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a run inside a task waits with its context, also on the only worker") {
  for (const unsigned workers : {1u, 3u}) {
    engine e(options(workers));
    std::vector<int> log;
    run(e, [&] {
      log.push_back(1);
      run(e, [&] {
        log.push_back(2);
        run(e, [&] { log.push_back(3); });
        log.push_back(4);
      });
      log.push_back(5);
    });
    CHECK(log == std::vector<int>{1, 2, 3, 4, 5});
    CHECK(counters(e).suspensions >= 2);
  }
}

TEST_CASE("a task's name is known where it runs") {
  engine e(options(2));
  weft_test::record<std::string> names;
  const auto note = [&] {
    const char* const name = weft::sched::current_task_name();
    names.add(name != nullptr ? name : "none");
  };
  run(e,
      [&] {
        note();
        fork({}, note, {.name = "child"});
        join();
        fork({}, note);
        join();
        note();
      },
      {.name = "root"});
  CHECK(names.entries() == std::vector<std::string>{"root", "child", "task", "root"});
  CHECK(weft::sched::current_task_name() == nullptr);
}

TEST_CASE("with one worker everything runs in reference order") {
  engine e(options(1));
  std::vector<int> log;
  run(e, [&] {
    for (int i = 1; i <= 3; ++i)
      fork({}, [&log, i] {
        log.push_back(i);
        fork({}, [&log, i] { log.push_back(10 * i); });
      });
    join();
    log.push_back(0);
    fork({}, [&] { log.push_back(4); });
  });
  CHECK(log == std::vector<int>{1, 10, 2, 20, 3, 30, 0, 4});
  CHECK(counters(e).steals == 0);
}

TEST_CASE("thousands of engines are made and destroyed, used and unused") {
  int ran = 0;
  const int n = 2000 / static_cast<int>(weft_test::scale());
  for (int i = 0; i < n; ++i) {
    engine e(options(1 + static_cast<unsigned>(i % 3)));
    if (i % 2 == 0) run(e, [&] { ++ran; });
  }
  CHECK(ran == (n + 1) / 2);
}

TEST_CASE("an engine has as many workers as it is told, more than there are processors") {
  engine e(options(24));
  CHECK(e.workers.size() == 24);
  weft_test::record<long> threads;
  std::atomic<int> inside{0};
  bool all = false;
  run(e, [&] {
    for (int i = 0; i < 23; ++i)
      fork({}, [&] {
        threads.add(kernel_thread());
        ++inside;
        wait_until([&] { return inside == 23; });
      });
    all = wait_until([&] { return inside == 23; });  // only thieves can have started them
  });
  CHECK(all);
  auto seen = threads.entries();
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
  CHECK(counters(e).steals == 23);
}

TEST_CASE("several engines live side by side") {
  std::deque<engine> all;
  for (unsigned i = 0; i < 10; ++i) all.emplace_back(options(1 + i % 3));
  std::atomic<int> ran{0};
  for (engine& e : all)
    run(e, [&] {
      for (engine& other : all)
        if (&other != &e) run(other, [&] { ++ran; });
    });
  CHECK(ran == 90);
}

TEST_CASE("workers that found nothing sleep, and wake for a run") {
  engine e({.workers = 3, .stack_size = 128 * 1024, .spin = std::chrono::microseconds(0)});
  CHECK(wait_until([&] { return counters(e).sleeps >= 3; }));
  int ran = 0;
  for (int i = 0; i < 200; ++i) run(e, [&] { ++ran; });
  CHECK(ran == 200);
  CHECK(counters(e).sleeps > 3);
}

TEST_CASE("workers have the smallest numbers that are free, and there is an end to them") {
  using weft::sched::worker_number;
  const auto first = std::make_unique<worker_number>();
  auto second = std::make_unique<worker_number>();
  const worker_number third;
  CHECK(first->value() == 1);
  CHECK(second->value() == 2);
  CHECK(third.value() == 3);
  second.reset();
  const worker_number again;
  CHECK(again.value() == 2);
  std::vector<std::unique_ptr<worker_number>> rest;
  while (rest.size() + 3 < worker_number::most) rest.push_back(std::make_unique<worker_number>());
  CHECK(rest.back()->value() == worker_number::most);
  CHECK_THROWS_AS(worker_number(), weft::error);
  CHECK_THROWS_WITH(weft::sched::engine({.workers = 2}), weft_test::contains("65536 workers"));
  rest.clear();
  const weft::sched::engine possible({.workers = 2});
}
