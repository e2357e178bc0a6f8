// SPDX-License-Identifier: BSL-1.0
// Runs that have a share of the workers: no more bodies at once, nobody left behind.
#include "flow/runtimes.hpp"

#include <weft/algorithms.hpp>
#include <weft/threads.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

using weft_test::wait_until;

namespace {

/// Waits for something that other bodies do meanwhile.
template <class F>
void expect(F happened) {
  if (!wait_until(happened)) throw std::runtime_error("nothing happened");
}

/// Counts the bodies that are executed at once.
class crowd {
 public:
  class visit {
   public:
    explicit visit(crowd& c) : crowd_(c) {
      const int now = ++crowd_.inside_;
      int most = crowd_.most_;
      while (now > most && !crowd_.most_.compare_exchange_weak(most, now)) {
      }
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { --crowd_.inside_; }

   private:
    crowd& crowd_;
  };

  int inside() const { return inside_; }
  int most() const { return most_; }

 private:
  std::atomic<int> inside_{0}, most_{0};
};

/// Gives other threads a chance to come in.
void stay(crowd& c, int turns = 3) {
  const crowd::visit here(c);
  for (int i = 0; i < turns; ++i) std::this_thread::yield();
}

void divide(crowd& c, int depth) {
  stay(c);
  if (depth == 0) return;
  weft::fork([&c, depth] { divide(c, depth - 1); });
  weft::fork([&c, depth] { divide(c, depth - 1); });
  if (depth % 2 == 0) weft::sync();
}

/// One of everything that may begin a body, or let one go on.
void work_on(crowd& c) {
  divide(c, 6);
  for (int i = 0; i < 20; ++i) weft::spawn([&c] { stay(c); });
  weft::fork_for(0, 200, [&c](int) { stay(c, 1); });
  weft::sync();
  weft::shared_array<long> values(100);
  for (int k = 0; k < 5; ++k)
    for (std::size_t i = 0; i < 100; ++i)
      weft::fork(
          [&c](weft::update<long[]> v) {
            stay(c, 1);
            ++v[0];
          },
          values.slice(i, 1));
  weft::sync();
  std::vector<int> numbers(2'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  weft::for_each(numbers, [&c](int& n) {
    const crowd::visit here(c);
    n = -n;
  });
  weft::latch all(10);
  for (int i = 0; i < 10; ++i)
    weft::spawn([&c, &all] {
      stay(c);
      all.arrive_and_wait();
      stay(c);
    });
  all.wait();
  weft::sync();
  const int slept = weft::this_task::blocking([] { return 1; });
  stay(c, slept);
}

}  // namespace

TEST_CASE("a run with a share of one worker never has two bodies at once") {
  for (const bool inlining : {true, false}) {
    weft::runtime rt({.workers = 4, .inlining = inlining});
    crowd c;
    for (int i = 0; i < 3; ++i) rt.run({.workers = 1}, [&] { work_on(c); });
    CHECK(c.most() == 1);
    CHECK(c.inside() == 0);
    rt.run([&] { work_on(c); });  // the next run has all of them
    rt.run([&] {
      for (int i = 0; i < 4; ++i)
        weft::spawn([&c] {
          const crowd::visit here(c);
          expect([&c] { return c.most() == 4; });
        });
    });
    CHECK(c.most() == 4);
  }
}

TEST_CASE("a share of several workers is used, and not exceeded") {
  weft::runtime rt({.workers = 8, .inlining = false});
  for (const unsigned share : {2u, 3u, 7u}) {
    crowd c;
    rt.run({.workers = share}, [&] {
      for (unsigned i = 0; i + 1 < share; ++i)
        weft::fork([&c, share] {
          const crowd::visit here(c);
          expect([&] { return c.most() == static_cast<int>(share); });
        });
      const crowd::visit here(c);
      expect([&] { return c.most() == static_cast<int>(share); });
    });
    for (int i = 0; i < 3; ++i) rt.run({.workers = share}, [&] { work_on(c); });
    CHECK(c.most() == static_cast<int>(share));
  }
}

TEST_CASE("runs of several threads have their shares at the same time") {
  weft::runtime rt({.workers = 4});
  std::atomic<int> there{0};
  crowd crowds[2];
  std::vector<std::thread> callers;
  for (crowd& c : crowds)
    callers.emplace_back([&rt, &there, &c] {
      rt.run({.workers = 2}, [&] {
        for (int i = 0; i < 2; ++i)
          weft::spawn([&] {
            const crowd::visit here(c);
            ++there;
            expect([&there] { return there == 4; });
          });
        weft::sync();
        work_on(c);
      });
    });
  for (std::thread& t : callers) t.join();
  for (const crowd& c : crowds) CHECK(c.most() == 2);
}

TEST_CASE("bodies of a run with one worker that wait for one another go on") {
  weft::runtime rt({.workers = 4});
  constexpr int rounds = 2'000;
  crowd c;
  int turns = 0;
  weft::condition<int> turn(0);
  rt.run({.workers = 1}, [&] {
    for (int me = 0; me < 3; ++me)
      weft::spawn([&turn, &turns, &c, me] {
        for (int i = 0; i < rounds; ++i) {
          turn.wait_equal(me);
          const crowd::visit here(c);
          ++turns;
          turn.set((me + 1) % 3);
        }
      });
  });
  CHECK(turns == 3 * rounds);
  CHECK(c.most() == 1);
}

TEST_CASE("a run in a task of a limited run has its workers, and may have fewer") {
  weft::runtime rt({.workers = 4}), other({.workers = 2});
  crowd outer, inner;
  rt.run({.workers = 2}, [&] {
    for (int i = 0; i < 3; ++i)
      weft::spawn([&] {
        stay(outer);
        rt.run([&] { work_on(outer); });
        rt.run({.workers = 3}, [&] { work_on(outer); });
        other.run({.workers = 1}, [] { weft::spawn([] {}); });
        stay(outer);
      });
  });
  CHECK(outer.most() <= 2);
  rt.run({.workers = 3}, [&] {
    weft::spawn([&] {
      rt.run({.workers = 1}, [&] {
        for (int i = 0; i < 50; ++i)
          weft::spawn([&] {
            const crowd::visit here(outer);
            stay(inner);
          });
        work_on(inner);
      });
    });
    for (int i = 0; i < 50; ++i) weft::spawn([&] { stay(outer); });
  });
  CHECK(inner.most() == 1);
  CHECK(outer.most() <= 3);
}

TEST_CASE("limited runs end by exceptions and stop like others, and give all back") {
  weft::runtime rt({.workers = 4});
  for (int round = 0; round < 20; ++round) {
    crowd c;
    CHECK_THROWS_AS(rt.run({.workers = 2},
                           [&] {
                             weft::condition<int> never(0);
                             for (int i = 0; i < 5; ++i) weft::spawn([&never] { never.wait_equal(1); });
                             weft::fork([&c] {
                               stay(c);
                               throw std::runtime_error("it fails");
                             });
                             weft::spawn([] { throw std::runtime_error("this too"); });
                             weft::sync();
                           }),
                    std::runtime_error);
    std::stop_source stop;
    CHECK_THROWS_AS(rt.run({.stop = stop.get_token(), .workers = 1},
                           [&] {
                             weft::condition<int> never(0);
                             for (int i = 0; i < 5; ++i) weft::spawn([&never] { never.wait_equal(1); });
                             weft::spawn([&stop] { stop.request_stop(); });
                             weft::sync();
                           }),
                    weft::cancelled);
    rt.run({.workers = 3}, [&] { divide(c, 4); });
    CHECK(c.most() <= 3);
  }
}

TEST_CASE("other runs go on while a limited run is full") {
  weft::runtime rt({.workers = 2});
  std::atomic<bool> go{false}, done{false};
  std::thread limited([&] {
    rt.run({.workers = 1}, [&] {
      for (int i = 0; i < 10; ++i) weft::spawn([&go] { expect([&go] { return go.load(); }); });
    });
    done = true;
  });
  for (int i = 0; i < 20; ++i) {
    int sum = 0;
    rt.run([&] {
      weft::shared<int> s(0);
      for (int k = 0; k < 10; ++k) weft::fork([](int& v) { ++v; }, weft::update(s));
      weft::sync();
      sum = 10;
    });
    CHECK(sum == 10);
  }
  CHECK_FALSE(done);
  go = true;
  limited.join();
}

TEST_CASE("a share of no or of too many workers is all of them") {
  weft::runtime rt({.workers = 3});
  for (const unsigned share : {0u, 3u, 4u, 1'000'000u}) {
    crowd c;
    rt.run({.workers = share}, [&] {
      for (int i = 0; i < 3; ++i)
        weft::spawn([&c] {
          const crowd::visit here(c);
          expect([&c] { return c.most() == 3; });
        });
    });
    CHECK(c.most() == 3);
  }
}

TEST_CASE("many short limited runs from many threads") {
  weft::runtime rt({.workers = 6});
  std::vector<std::thread> callers;
  std::atomic<int> exceeded{0};
  for (unsigned caller = 0; caller < 4; ++caller)
    callers.emplace_back([&rt, &exceeded, caller] {
      for (int i = 0; i < 200; ++i) {
        crowd c;
        const unsigned share = 1 + (caller + static_cast<unsigned>(i)) % 3;
        rt.run({.workers = share}, [&c] {
          divide(c, 3);
          weft::latch both(2);
          weft::spawn([&both] { both.arrive_and_wait(); });
          both.arrive_and_wait();
          weft::sync();
        });
        if (c.most() > static_cast<int>(share)) ++exceeded;
      }
    });
  for (std::thread& t : callers) t.join();
  CHECK(exceeded == 0);
}
