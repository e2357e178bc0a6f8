// SPDX-License-Identifier: BSL-1.0
// Large frames under load: many tasks of every shape, priorities, failures, stops, nesting, and the cap on
// live closures.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"
#include "support/record.hpp"
#include "support/tracked.hpp"

#include <weft/weft.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

using weft_test::tracked;
using weft_test::works;

namespace {

/// `n` tasks, or fewer where the build is slow.
std::size_t scaled(std::size_t n) { return n / weft_test::scale(); }

/// What the runtimes of a test have done together.
struct totals {
  std::uint64_t promotions = 0, demotions = 0, capped = 0, steals = 0, parkings = 0, suspensions = 0;
  void add(const weft::counters& c) {
    promotions += c.promotions;
    demotions += c.demotions;
    capped += c.capped;
    steals += c.steals;
    parkings += c.parkings;
    suspensions += c.suspensions;
  }
  void print(const char* name) const {
    std::printf(
        "%s: promotions %llu, demotions %llu, capped %llu, steals %llu, parkings %llu, suspensions %llu\n",
        name, static_cast<unsigned long long>(promotions), static_cast<unsigned long long>(demotions),
        static_cast<unsigned long long>(capped), static_cast<unsigned long long>(steals),
        static_cast<unsigned long long>(parkings), static_cast<unsigned long long>(suspensions));
  }
};

/// A runtime with thieves.
struct crowd : weft::runtime {
  bool inlining;

  crowd(unsigned workers, bool inlines)
      : runtime({.workers = workers, .inlining = inlines}), inlining(inlines) {}
  /// Keeps a worker busy until a thief has made a graph of a frame, unless tasks may run inside fork.
  void await_promotion() const {
    if (!inlining) weft_test::wait_until([this] { return counters().promotions > 0; });
  }
};

/// Calls f on runtimes with thieves. *Returns*: what they have done.
template <class F>
totals on_each_runtime(F&& f) {
  totals sum;
  for (const unsigned workers : {2u, 4u, 8u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      crowd rt(workers, inlining);
      f(rt);
      sum.add(rt.counters());
    }
  return sum;
}

std::uint64_t step(std::uint64_t x, std::uint64_t with) { return x * 6364136223846793005u + with; }

/// Some work, so that thieves come in time.
void work_a_little(int pauses = 500) {
  for (int i = 0; i < pauses; ++i) weft::base::pause();
}

}  // namespace

TEST_CASE("every task of a large frame is run once") {
  const std::size_t n = scaled(200'000);
  const totals sum = on_each_runtime([n](crowd& rt) {
    std::vector<std::uint8_t> times(n);
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i) weft::fork([&times, i] { ++times[i]; });
      rt.await_promotion();
    });
    CHECK(std::count(times.begin(), times.end(), std::uint8_t{1}) == static_cast<std::ptrdiff_t>(n));
  });
  sum.print("independent");
  CHECK(sum.promotions > 0);
  CHECK(sum.steals > 0);
  if (n > 1u << 15) CHECK(sum.capped > 0);
}

TEST_CASE("a long chain among independent tasks keeps its order") {
  const std::size_t n = scaled(100'000);
  std::uint64_t expected = 1;
  for (std::size_t i = 0; i < n; ++i) expected = step(expected, i);
  const totals sum = on_each_runtime([&](crowd& rt) {
    weft::shared<std::uint64_t> v(std::uint64_t{1});
    std::atomic<std::size_t> others{0};
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i) {
        weft::fork([i](std::uint64_t& x) { x = step(x, i); }, weft::update(v));
        if (i % 4 == 0) weft::fork([&] { others.fetch_add(1, std::memory_order_relaxed); });  // run orders it
      }
      rt.await_promotion();
    });
    CHECK(v.get() == expected);
    CHECK(others == (n + 3) / 4);
  });
  sum.print("chain");
  CHECK(sum.promotions > 0);
}

TEST_CASE("a wavefront gives what the serial loop gives") {
  const std::size_t side = weft_test::scale() == 1 ? 200 : 70;
  std::vector<std::uint64_t> expected(side * side, 1);
  for (std::size_t i = 1; i < side; ++i)
    for (std::size_t k = 1; k < side; ++k)
      expected[i * side + k] = step(expected[(i - 1) * side + k], 3 * expected[i * side + k - 1]);
  const totals sum = on_each_runtime([&](crowd& rt) {
    std::vector<std::uint64_t> cells(side * side, 1);
    rt.run([&] {
      for (std::size_t i = 1; i < side; ++i)
        for (std::size_t k = 1; k < side; ++k)
          weft::fork(
              [&rt, waits = i == side / 2 && k == side / 4](const std::uint64_t& above,
                                                            const std::uint64_t& left, std::uint64_t& here) {
                here = step(above, 3 * left);
                if (waits) rt.await_promotion();  // the beginning of the next row is ready
              },
              weft::read(weft::borrow(cells[(i - 1) * side + k])),
              weft::read(weft::borrow(cells[i * side + k - 1])),
              weft::update(weft::borrow(cells[i * side + k])));
    });
    CHECK(cells == expected);
  });
  sum.print("wavefront");
  CHECK(sum.promotions > 0);
}

TEST_CASE("a random graph of tasks gives what the serial program gives") {
  struct task {
    std::size_t from[2], to;
    int priority;
    bool local;
  };
  const std::size_t n = scaled(40'000);
  weft_test::random dice(weft_test::seed());
  totals sum;
  for (const std::size_t objects : {3u, 40u, 1000u}) {
    INFO("objects " << objects);
    std::vector<task> tasks(n);
    for (task& t : tasks)
      t = {{dice.below(objects), dice.below(objects)},
           dice.below(objects),
           dice.one_in(3) ? static_cast<int>(dice.below(5)) : 0,
           dice.one_in(20)};
    std::vector<std::uint64_t> start(objects);
    for (std::size_t i = 0; i < objects; ++i) start[i] = i;
    std::vector<std::uint64_t> expected = start;
    for (const task& t : tasks)
      expected[t.to] = step(expected[t.to], expected[t.from[0]] ^ (expected[t.from[1]] >> 1));
    const totals here = on_each_runtime([&](crowd& rt) {
      std::vector<std::uint64_t> values = start;
      rt.run([&] {
        for (const task& t : tasks) {
          const auto in = [&](std::size_t i) { return weft::borrow(values[i]); };
          weft::fork(
              {.priority = t.priority, .local = t.local},
              [](const std::uint64_t& a, const std::uint64_t& b, std::uint64_t& c) {
                c = step(c, a ^ (b >> 1));
              },
              weft::read(in(t.from[0])), weft::read(in(t.from[1])), weft::update(in(t.to)));
        }
        if (objects == 1000) rt.await_promotion();
      });
      CHECK(values == expected);
    });
    sum.promotions += here.promotions;
    sum.parkings += here.parkings;
  }
  std::printf("random: promotions %llu, parkings %llu\n", static_cast<unsigned long long>(sum.promotions),
              static_cast<unsigned long long>(sum.parkings));
  CHECK(sum.promotions > 0);
}

TEST_CASE("among ready tasks the most urgent are run first") {
  for (int round = 0; round < 20; ++round) {
    weft::runtime rt({.workers = 2, .inlining = false});
    weft_test::random dice(weft_test::seed() + static_cast<std::uint64_t>(round));
    std::vector<int> order;  // by the owner alone
    std::atomic<bool> busy{false}, open{false}, captured{false}, over{false}, late{false};
    const auto wait_for = [&late](const std::atomic<bool>& flag) {
      if (!weft_test::wait_until([&] { return flag.load(); })) late = true;
    };
    int gate = 0;
    rt.run([&] {
      const auto fork_waiting = [&](int n) {
        for (int i = 0; i < n; ++i) {
          const int p = 1 + static_cast<int>(dice.below(8));
          weft::fork(
              {.priority = p}, [&order, p](const int&) { order.push_back(p); },
              weft::read(weft::borrow(gate)));
        }
      };
      weft::fork([&] {
        busy = true;
        wait_for(open);
      });
      wait_for(busy);  // the thief is held until all is forked
      weft::fork({.local = true}, [](int&) {}, weft::update(weft::borrow(gate)));
      fork_waiting(50);
      // The thief makes the graph, for these two are ready, and is held in the first.
      weft::fork({.priority = 9}, [&] {
        captured = true;
        wait_for(over);
      });
      weft::fork({.priority = -9}, [&] { over = true; });
      fork_waiting(50);
      open = true;
      wait_for(captured);
    });
    CHECK_FALSE(late);
    CHECK(rt.counters().promotions == 1);
    CHECK(order.size() == 100);
    CHECK(std::is_sorted(order.begin(), order.end(), std::greater<>()));
  }
}

TEST_CASE("a local task of a large frame runs in the strand of its parent, one at a time") {
  const std::size_t n = scaled(20'000);
  const totals sum = on_each_runtime([n](crowd& rt) {
    std::atomic<int> inside{0}, wrong{0};
    std::atomic<std::size_t> ran{0}, elsewhere{0};
    int x = 0;
    rt.run([&] {
      const weft::sched::strand* const home = &weft::sched::current();
      for (std::size_t i = 0; i < n; ++i) {
        weft::fork({.local = true}, [&, home] {
          wrong += &weft::sched::current() != home || inside.fetch_add(1) != 0;
          ++ran;
          --inside;
        });
        weft::fork([&, home] {
          if (&weft::sched::current() != home) ++elsewhere;
        });
        if (i % 8 == 0) weft::fork({.local = true}, [](int& v) { ++v; }, weft::update(weft::borrow(x)));
        if (i % 8 == 4) weft::fork([](int& v) { ++v; }, weft::update(weft::borrow(x)));
      }
      rt.await_promotion();
    });
    CHECK(wrong == 0);
    CHECK(ran == n);
    CHECK(x == static_cast<int>((n + 7) / 8 + (n + 3) / 8));
    if (elsewhere == 0) std::printf("nothing was stolen\n");
  });
  sum.print("local");
  CHECK(sum.promotions > 0);
}

TEST_CASE("the first exception of a large frame leaves the run, and nothing is left behind") {
  const std::size_t n = scaled(5'000);
  weft_test::random dice(weft_test::seed());
  const totals sum = on_each_runtime([&](crowd& rt) {
    for (int round = 0; round < 10; ++round) {
      tracked::reset();
      std::vector<std::uint8_t> throws(n), ran(n);
      for (int i = 0; i <= round; ++i) throws[dice.below(n)] = 1;
      const auto first =
          static_cast<std::size_t>(std::find(throws.begin(), throws.end(), 1) - throws.begin());
      std::optional<std::size_t> caught;
      const bool by_sync = round % 2 == 0;
      const auto body = [&] {
        int x = 0;
        const tracked on_stack(1);
        for (std::size_t i = 0; i < n; ++i) {
          const auto task = [&, i, t = tracked(2)] {
            ran[i] = 1;
            work_a_little();
            if (throws[i] != 0) throw i;
          };
          if (i % 10 == 0)
            weft::fork([task](int&) { task(); }, weft::update(weft::borrow(x)));
          else
            weft::fork(task);
        }
        weft::sync();
      };
      if (by_sync) {
        rt.run([&] {
          try {
            body();
          } catch (std::size_t i) {
            caught = i;
          }
        });
      } else {
        try {
          rt.run(body);
        } catch (std::size_t i) {
          caught = i;
        }
      }
      CHECK(caught == first);
      CHECK(std::count(ran.begin(), ran.begin() + static_cast<std::ptrdiff_t>(first), 1) ==
            static_cast<std::ptrdiff_t>(first));  // nothing before it is dropped
      CHECK(tracked::alive == 0);
    }
    CHECK(works(rt));
  });
  sum.print("exceptions");
  CHECK(sum.promotions > 0);
}

TEST_CASE("a run with a large frame pending may be stopped") {
  const std::size_t n = scaled(20'000);
  weft_test::random dice(weft_test::seed());
  const totals sum = on_each_runtime([&](crowd& rt) {
    for (int round = 0; round < 10; ++round) {
      tracked::reset();
      const std::size_t stops = dice.below(n);
      std::atomic<std::size_t> ran{0};
      CHECK_THROWS_AS(rt.run([&] {
        int x = 0;
        for (std::size_t i = 0; i < n; ++i) {
          if (i % 10 == 0)
            weft::fork([t = tracked(1)](int&) { work_a_little(); }, weft::update(weft::borrow(x)));
          weft::fork([&, i, t = tracked(1)] {
            ++ran;
            if (i == stops) weft::this_task::request_stop();
          });
        }
        weft::sync();
      }),
                      weft::cancelled);
      CHECK(ran > 0);
      CHECK(tracked::alive == 0);
    }
    CHECK(works(rt));
  });
  sum.print("stop");
  CHECK(sum.promotions > 0);
}

TEST_CASE("no task of a large frame is begun after its own strand has stopped the run, not even the first") {
  // Where thieves come while the frame is small, and find that its tasks are tiny, it has no graph.
  int with_graph = 0;
  for (int round = 0; round < 20; ++round) {
    weft::runtime rt({.workers = 2, .inlining = false});
    bool first_ran = false;
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork({.local = true}, [&] { first_ran = true; });
      for (int i = 0; i < 5'000; ++i) weft::fork([] { work_a_little(); });
      with_graph += weft_test::wait_until([&] { return rt.counters().promotions != 0; },
                                          std::chrono::milliseconds(500));
      weft::this_task::request_stop();
    }),
                    weft::cancelled);
    CHECK_FALSE(first_ran);
  }
  CHECK(with_graph > 0);
}

namespace {

/// A large frame of tasks that each fork a large frame. *Returns*: the number of leaves.
long nest(int depth, int width, bool with_data) {
  if (depth == 0) {
    work_a_little(100);
    return 1;
  }
  std::vector<long> results(static_cast<std::size_t>(width));
  long sum = 0;
  for (long& r : results)
    weft::fork([depth, width, with_data](long& out) { out = nest(depth - 1, width, with_data); },
               weft::write(weft::borrow(r)));
  if (with_data)
    for (const long& r : results)
      weft::fork([](const long& in, long& all) { all += in; }, weft::read(weft::borrow(r)),
                 weft::update(weft::borrow(sum)));
  weft::sync();
  if (!with_data)
    for (const long r : results) sum += r;
  return sum;
}

}  // namespace

TEST_CASE("large frames are nested") {
  const int width = weft_test::scale() == 1 ? 150 : 80;
  const totals sum = on_each_runtime([width](crowd& rt) {
    for (const bool with_data : {false, true}) {
      CHECK(rt.run(nest, 2, width, with_data) == static_cast<long>(width) * width);
      CHECK(rt.run(nest, 3, 30, with_data) == 27'000);
    }
  });
  sum.print("nested");
  CHECK(sum.promotions > 3);
  CHECK(sum.suspensions > 0);
}

namespace {

/// What closures capture, counted once for each closure: what was moved from does not count.
class token {
 public:
  static inline std::atomic<long> alive{0}, most{0};
  static void reset() { alive = most = 0; }

  token() {
    const long now = ++alive;
    for (long m = most; now > m && !most.compare_exchange_weak(m, now);) {
    }
  }
  token(token&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
  token(const token&) = delete;
  token& operator=(const token&) = delete;
  token& operator=(token&&) = delete;
  ~token() { alive -= counts_; }

 private:
  bool counts_ = true;
};

/// Bytes resident at the moment.
long resident() {
  long total = 0, resident = 0;
  std::FILE* const f = std::fopen("/proc/self/statm", "r");
  if (f == nullptr) return 0;
  const int read = std::fscanf(f, "%ld %ld", &total, &resident);
  std::fclose(f);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

TEST_CASE("a loop on one worker never has more tasks alive than the cap") {
  const std::size_t n = scaled(100'000);
  for (const unsigned cap : {1u, 50u}) {
    token::reset();
    std::size_t ran = 0;
    weft::runtime rt({.workers = 1, .inlining = false, .cap = cap});
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i) weft::fork([&ran, i, t = token()] { ran += i == ran; });
    });
    CHECK(ran == n);
    CHECK(token::alive == 0);
    CHECK(token::most <= cap + 1);  // the one that is being forked
    CHECK(token::most >= cap);
    CHECK(rt.counters().capped >= n / cap - 1);
  }
}

TEST_CASE("with thieves, each strand keeps to the cap") {
  constexpr unsigned cap = 50;
  constexpr long depth = 3;
  for (const unsigned workers : {2u, 4u, 8u}) {
    INFO("workers " << workers);
    token::reset();
    std::atomic<std::size_t> ran{0};
    weft_test::record<const weft::sched::strand*> strands;
    weft::runtime rt({.workers = workers, .inlining = false, .cap = cap});
    const std::size_t n = scaled(1'000);
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i)
        weft::fork([&, t = token()] {
          strands.add(&weft::sched::current());
          for (int k = 0; k < 200; ++k)
            weft::fork([&, inner = token()] {
              ran.fetch_add(1, std::memory_order_relaxed);  // run orders it before the read
            });
        });
    });
    const auto all = strands.entries();
    const auto used = static_cast<long>(std::set(all.begin(), all.end()).size()) + 1;
    std::printf("cap with %u workers: %ld tokens, %ld strands\n", workers, token::most.load(), used);
    CHECK(ran == 200 * n);
    CHECK(token::alive == 0);
    // Those that are being forked have no closure yet; leaves may run in a strand of their own.
    CHECK(token::most <= (cap + depth) * (used + static_cast<long>(workers)) + static_cast<long>(workers));
    CHECK(rt.counters().capped > 0);
  }
}

TEST_CASE("an exception that is thrown while room is made is the one that the serial program throws") {
  for (const unsigned workers : {1u, 4u}) {
    INFO("workers " << workers);
    tracked::reset();
    weft::runtime rt({.workers = workers, .inlining = false, .cap = 50});
    for (const int bad : {0, 49, 50, 51, 777}) {
      int caught = -1, after = 0;
      try {
        rt.run([&] {
          int last = 0;
          for (int i = 0; i < 1'000; ++i)
            weft::fork(
                [&, i, t = tracked(1)](int& l) {
                  l = i;
                  if (i >= bad) throw i;
                },
                weft::update(weft::borrow(last)));
          after = last;
        });
      } catch (int i) {
        caught = i;
      }
      CHECK(caught == bad);
      CHECK(after <= bad);
      CHECK(tracked::alive == 0);
    }
    CHECK(rt.counters().capped > 0);
    CHECK(works(rt));
  }
}

TEST_CASE("a loop of ten million tasks needs the memory of the cap") {
  const std::size_t n = scaled(scaled(10'000'000));
  for (const unsigned workers : {1u, 2u}) {
    INFO("workers " << workers);
    weft::runtime rt({.workers = workers, .inlining = false});
    std::atomic<std::size_t> ran{0};
    long before = 0, most = 0;
    rt.run([&] {
      for (std::size_t i = 0; i < n; ++i) {
        weft::fork([&] { ran.fetch_add(1, std::memory_order_relaxed); });  // run orders it before the read
        if (i % 50'000 == 0) most = std::max(most, resident());
        if (i == n / 10) before = most;
      }
    });
    CHECK(ran == n);
    CHECK(rt.counters().capped > 0);
    std::printf("memory with %u workers: %ld kB, then %ld kB\n", workers, before / 1024, most / 1024);
    if (!weft_test::sanitized) CHECK(most - before <= 8 << 20);
  }
}
