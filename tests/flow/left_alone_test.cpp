// SPDX-License-Identifier: BSL-1.0
// Tasks that are too short to be stolen: the worker that forks them runs them inside fork again, and a second
// worker neither slows it down nor changes what the program does.
#include "fault/waiting.hpp"
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Two workers, of which the second one is busy while `f` runs in a task: nobody steals from it, though it
/// defers.
template <class F>
void beside_a_busy_worker(F&& f) {
  weft::runtime rt({.workers = 2});
  std::atomic<bool> busy{false}, over{false};
  rt.run([&] {
    weft::fork([&] {
      busy = true;
      while (!over) std::this_thread::yield();
    });
    while (!busy) std::this_thread::yield();
    weft::fork([&] {
      struct release {
        std::atomic<bool>& over;
        ~release() { over = true; }
      } at_end{over};
      weft::sched::current().surplus = 0;  // thieves are hungry
      f();
      weft::sync();
    });
    while (!over) weft::sync();
  });
}

/// What a thief says who has found tasks too short.
void leave_alone() {
  weft::sched::current().attention.fetch_or(weft::sched::left_alone, std::memory_order_relaxed);
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "what is pending runs at the next fork, in reference order, and tasks run inside fork from then on") {
  names seen;
  beside_a_busy_worker([&] {
    weft::fork([&] { seen.push_back("first"); });
    weft::fork([&] { seen.push_back("second"); });
    CHECK(seen.empty());
    leave_alone();
    weft::fork([&] { seen.push_back("third"); });
    CHECK(seen == names{"first", "second", "third"});
    weft::fork([&] { seen.push_back("fourth"); });
    CHECK(seen.size() == 4);
    weft::sched::current().attention.fetch_or(weft::sched::hungry, std::memory_order_relaxed);
    weft::fork([&] { seen.push_back("fifth"); });
    CHECK(seen.size() == 4);  // for thieves
  });
  CHECK(seen.size() == 5);
}

TEST_CASE("nothing runs early that may wait for what the body does later") {
  const auto is_early = [](auto&& pending) {
    bool early = false;
    beside_a_busy_worker([&] {
      pending();
      weft::fork([&] { early = true; });
      leave_alone();
      weft::fork([] {});
      const bool was = early;
      weft::sync();
      early = was;
    });
    return early;
  };
  CHECK(is_early([] {}));
  CHECK_FALSE(is_early([] { weft::fork({.event = true}, [] {}); }));
  CHECK_FALSE(is_early([] { weft::fork({.local = true}, [] {}); }));
}

TEST_CASE("nothing runs early in a scope that must not wait") {
  int ran = 0;
  beside_a_busy_worker([&] {
    weft::fork([&] { ++ran; });
    {
      const weft::this_task::no_suspend held("a lock");
      leave_alone();
      weft::fork([&] { ++ran; });
      CHECK(ran == 0);
    }
    leave_alone();
    weft::fork([&] { ++ran; });
    CHECK(ran == 3);
  });
}

TEST_CASE("an exception of a task that runs early stays at its place") {
  names seen;
  std::string caught;
  beside_a_busy_worker([&] {
    weft::fork([&] { seen.push_back("before"); });
    weft::fork([] { throw std::runtime_error("thrown"); });
    weft::fork([&] { seen.push_back("dropped"); });
    leave_alone();
    weft::fork([&] { seen.push_back("dropped, too"); });
    seen.push_back("the body goes on");
    weft::fork([&] { seen.push_back("dropped as well"); });
    try {
      weft::sync();
    } catch (const std::runtime_error& e) {
      caught = e.what();
    }
    weft::fork([&] { seen.push_back("after"); });
  });
  CHECK(caught == "thrown");
  CHECK(seen == names{"before", "the body goes on", "after"});
}

TEST_CASE("a worker that slept when a strand was left alone comes back to it") {
  weft::runtime rt({.workers = 2, .inlining = false});
  std::atomic<bool> ran{false};
  rt.run([&] {
    weft::sched::strand& s = weft::sched::current();
    REQUIRE(weft_test::wait_until([&] { return rt.describe().find(" sleeps\n") != std::string::npos; }));
    weft::sched::attend(s);
    s.cooldown.begin(s.root);
    leave_alone();
    weft::fork([&] { ran = true; });
    CHECK(weft_test::wait_until([&] { return ran.load(); }));
  });
}

TEST_CASE("a worker that slept while a strand that is left alone waited comes back to it") {
  weft::runtime rt({.workers = 2, .inlining = false});
  const auto one_sleeps = [&] { return rt.describe().find(" sleeps\n") != std::string::npos; };
  std::atomic<bool> begun{false}, ran{false};
  bool slept = false;
  rt.run([&] {
    weft::fork([&] {
      begun = true;
      slept = weft_test::wait_until(one_sleeps);  // the worker whose strand waits
    });
    REQUIRE(weft_test::wait_until([&] { return begun.load(); }));
    // It has been told, and whoever searched then has told nobody to come back.
    weft::sched::strand& s = weft::sched::current();
    weft::sched::attend(s);
    s.cooldown.begin(s.root);
    s.surplus = weft::sched::left_alone_surplus;
    weft::sync();
    weft::fork([&] { ran = true; });
    CHECK(weft_test::wait_until([&] { return ran.load(); }));
  });
  CHECK(slept);
}

TEST_CASE("a theft ends only the cooldown that it came behind") {
  using namespace std::chrono_literals;
  using clock = weft::sched::deadline::clock;
  for (const bool another_begins : {false, true}) {
    weft::runtime rt({.workers = 2});
    std::atomic<int> begun{0}, may_end{0};
    rt.run([&] {
      weft::sched::strand& s = weft::sched::current();
      const weft::sched::frame& below = s.root;
      s.surplus = 0;  // thieves are hungry
      s.cooldown.begin(below, clock::now() - 1s);
      // Fewer than make a graph, and enough for a crowd, all longer than short thefts. All but the second
      // theft end by themselves.
      for (unsigned i = 0; i < weft::sched::granularity::large_frame - 1; ++i)
        weft::fork([&] {
          const int mine = ++begun;
          const auto start = clock::now();
          while (mine == 2 && may_end == 0) std::this_thread::yield();
          while (clock::now() - start < 10us) {
          }
        });
      while (begun < 2) std::this_thread::yield();
      CHECK(s.cooldown.any());  // the first theft may have been long because it was the first
      if (another_begins) s.cooldown.begin(below, clock::now() + std::chrono::hours(1));
      may_end = 1;
      if (!another_begins) {
        while (s.cooldown.any()) std::this_thread::yield();
      } else {
        // A theft is noted before its task counts as ended.
        const weft::sched::closure& second = *s.top->first.load()->next.load();
        while (second.state.load() != weft::sched::closure_state::done) std::this_thread::yield();
        CHECK(s.cooldown.covers(below));
        CHECK(begun == 2);
        s.cooldown.reset();
      }
    });
    CHECK(begun == static_cast<int>(weft::sched::granularity::large_frame) - 1);
  }
}

TEST_CASE("a second worker does not pull frames of tiny tasks apart") {
  // Counts, not times. A busy machine may keep the thief from saying what it has found, hence the best of
  // some rounds.
  if (weft_test::sanitized) return;  // nothing is tiny there
  static constexpr int side = 400, times = 20, all = times * side * side;
  struct result {
    std::uint64_t deferred, steals, barriers;
  };
  const auto best_of_rounds = [](auto&& fork_all) {
    result best{UINT64_MAX, UINT64_MAX, UINT64_MAX};
    weft::runtime rt({.workers = 2});
    for (int round = 0; round < 300 && best.deferred > all / (round < 20 ? 8 : 2); ++round) {
      const weft::counters before = rt.counters();
      rt.run([&] {
        for (int i = 0; i < times; ++i) {
          fork_all();
          weft::sync();
        }
      });
      const weft::counters after = rt.counters();
      if (after.deferred - before.deferred < best.deferred)
        best = {after.deferred - before.deferred, after.steals - before.steals,
                after.barriers - before.barriers};
    }
    return best;
  };
  std::vector<long> field(side * side, 1);
  const auto check = [](const char* shape, const result& r) {
    CAPTURE(shape, r.deferred, r.steals, r.barriers);
    CHECK(r.deferred < all / 2);  // all of them, where they are pulled apart
    CHECK(r.steals < all / 64);
    CHECK(r.barriers < times * side);
  };
  check("independent", best_of_rounds([&] {
          for (long& v : field) weft::fork([](long& x) { ++x; }, weft::update(weft::borrow(v)));
        }));
  check("chain", best_of_rounds([&] {
          for (int i = 0; i < side * side; ++i)
            weft::fork([](long& x) { ++x; }, weft::update(weft::borrow(field[0])));
        }));
  check("wavefront", best_of_rounds([&] {
          for (int i = side; i < side * side; ++i)
            if (i % side != 0)
              weft::fork([](const long& a, const long& b, long& c) { c = a + b; },
                         weft::read(weft::borrow(field[i - side])), weft::read(weft::borrow(field[i - 1])),
                         weft::update(weft::borrow(field[i])));
        }));
}
