// SPDX-License-Identifier: BSL-1.0
// Recorded graphs: replays do what the serial program does, overlap, and notice a graph that has changed.
#include "flow/runtimes.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"
#include "support/tracked.hpp"

#include <weft/threads.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft::borrow;
using weft_test::contains;

namespace {

/// Calls f on runtimes with thieves and without, that run tasks inside fork or not, with and without a cap
/// that replays reach.
template <class F>
void on_all(F&& f) {
  for (const unsigned workers : {1u, 2u, 3u, 8u})
    for (const bool inlining : {true, false})
      for (const unsigned cap : {1u << 14, 37u}) {
        INFO("workers " << workers << ", inlining " << inlining << ", cap " << cap);
        weft::runtime rt({.workers = workers, .inlining = inlining, .cap = cap});
        f(rt);
      }
}

/// Calls f again and again until a graph was replayed: whether thieves come in time is theirs to decide.
template <class F>
void until_replayed(F&& f) {
  weft::runtime rt({.workers = 3, .inlining = false});
  CHECK(weft_test::wait_until([&] {
    f(rt);
    return rt.counters().replayed != 0;
  }));
}

/// A three-point stencil on two rows that take turns.
class stencil {
 public:
  explicit stencil(std::size_t width)
      : row_{std::vector<long>(width + 2, 1), std::vector<long>(width + 2, 1)} {}
  void fork(long add) {
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t i = 1; i + 1 < row_[0].size(); ++i)
        weft::fork([add](long l, long m, long r, long& out) { out = blend(l, m, r, add); },
                   weft::read(borrow(row_[t][i - 1])), weft::read(borrow(row_[t][i])),
                   weft::read(borrow(row_[t][i + 1])), weft::write(borrow(row_[1 - t][i])));
  }
  void serial(long add) {
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t i = 1; i + 1 < row_[0].size(); ++i)
        row_[1 - t][i] = blend(row_[t][i - 1], row_[t][i], row_[t][i + 1], add);
  }
  void reset() {
    for (auto& row : row_) std::fill(row.begin(), row.end(), 1);
  }
  bool operator==(const stencil&) const = default;

 private:
  static long blend(long l, long m, long r, long add) { return (l + 3 * m + 5 * r + add) % 100003; }
  std::array<std::vector<long>, 2> row_;
};

stencil serial_stencil(std::size_t width, int steps) {
  stencil s(width);
  for (int i = 0; i < steps; ++i) s.serial(i);
  return s;
}

}  // namespace

TEST_CASE("a recorded graph computes what the serial program computes, with other arguments each time") {
  const stencil expected = serial_stencil(50, 20);
  on_all([&](weft::runtime& rt) {
    stencil s(50);
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 20; ++i) step([&] { s.fork(i); });
    });
    CHECK(s == expected);
  });
  until_replayed([&](weft::runtime& rt) {
    stencil s(50);
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 20; ++i) step([&] { s.fork(i); });
    });
    CHECK(s == expected);
  });
}

TEST_CASE("a traced runtime replays, too") {
  weft::runtime rt({.workers = 3, .inlining = false, .trace = "/dev/null"});
  CHECK(weft_test::wait_until([&] {
    stencil s(50);
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 20; ++i) step([&] { s.fork(i); });
    });
    return rt.counters().replayed != 0;
  }));
}

TEST_CASE("a replay overlaps with the one before, as far as data allow") {
  weft::runtime rt({.workers = 3, .inlining = false});
  std::atomic<int> free_runs{0};
  std::atomic<bool> held{false}, overlapped{false}, too_early{false};
  std::vector<long> chain(1), free(100);
  rt.run([&] {
    weft::recorded step;
    const auto iteration = [&](bool hold) {
      step([&] {
        weft::fork(
            [&, hold](long&) {
              held = true;
              if (hold) overlapped = weft_test::wait_until([&] { return free_runs == 300; });
              held = false;
            },
            weft::update(borrow(chain[0])));
        weft::fork([&](const long&) { too_early = too_early || held; }, weft::read(borrow(chain[0])));
        for (long& v : free)
          weft::fork(
              [&](long& x) {
                ++x;
                ++free_runs;
              },
              weft::update(borrow(v)));
      });
    };
    iteration(false);
    weft::sync();
    iteration(true);
    iteration(false);
    weft_test::wait_until([&] { return overlapped.load(); });  // thieves do it all
  });
  CHECK(overlapped);
  CHECK(!too_early);
  CHECK(rt.counters().replayed > 0);
}

TEST_CASE("a strand that thieves leave alone records all tasks") {
  weft::runtime rt({.workers = 2, .inlining = false});
  std::atomic<bool> busy{false}, over{false};
  std::vector<long> v(10);
  std::uint32_t known = 0;
  rt.run([&] {
    weft::fork([&] {
      busy = true;
      weft_test::wait_until([&] { return over.load(); });
    });
    weft_test::wait_until([&] { return busy.load(); });  // nobody is hungry from now on
    weft::fork([&] {
      weft::sched::strand& s = weft::sched::current();
      weft::recorded step;
      const auto forks = [&] {
        for (long& x : v) weft::fork([](long& y) { ++y; }, weft::update(borrow(x)));
      };
      weft::sched::attend(s);
      s.surplus = weft::sched::left_alone_surplus;
      step(forks);
      weft::sync();
      step(forks);
      if (const auto* const m = weft::sched::record_marker::is(*s.top->first.load())) known = m->of->size();
      over = true;
    });
  });
  CHECK(known == v.size());
  CHECK(v == std::vector<long>(10, 2));
}

TEST_CASE("ordinary tasks before, between and behind replays") {
  on_all([](weft::runtime& rt) {
    std::vector<long> v(40, 1), w(40, 1);
    const auto add = [](long& x, long by) { x = (7 * x + by) % 1000003; };
    const auto forks = [&](int i) {
      for (std::size_t k = 0; k < v.size(); ++k) {
        weft::fork([=](long& x, const long& y) { add(x, y + i); }, weft::update(borrow(v[k])),
                   weft::read(borrow(v[(k + 1) % v.size()])));
      }
    };
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 12; ++i) {
        if (i % 3 == 1)
          for (long& x : v) weft::fork([=](long& y) { add(y, i); }, weft::update(borrow(x)));
        step([&] { forks(i); });
        if (i % 4 == 2) weft::fork([=](long& y) { add(y, -i); }, weft::update(borrow(v[7])));
        if (i == 5) weft::sync();
      }
    });
    for (int i = 0; i < 12; ++i) {
      if (i % 3 == 1)
        for (long& x : w) add(x, i);
      for (std::size_t k = 0; k < w.size(); ++k) add(w[k], w[(k + 1) % w.size()] + i);
      if (i % 4 == 2) add(w[7], -i);
    }
    CHECK(v == w);
  });
}

TEST_CASE("bodies that are spawned between the tasks of a recorded graph are none of them") {
  on_all([](weft::runtime& rt) {
    long value = 1, expected = 1;
    std::atomic<int> inside{0}, wrong{0};
    constexpr int rounds = 30, tasks = 12;
    const auto next = [](long v, int k) { return (7 * v + k) % 1000003; };
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < rounds; ++i)
        step([&] {
          for (int k = 0; k < tasks; ++k) {
            weft::fork(
                [&, k](long& v) {
                  wrong += inside++ != 0;
                  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
                  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
                  v = next(v, k);
                  --inside;
                },
                weft::update(borrow(value)));
            if (k % 4 == 0) weft::spawn([] {});
          }
        });
    });
    for (int i = 0; i < rounds * tasks; ++i) expected = next(expected, i % tasks);
    CHECK(wrong == 0);
    CHECK(value == expected);
  });
}

TEST_CASE("recorded graphs in child tasks, and one used by several tasks at the same time") {
  const stencil expected = serial_stencil(20, 10);
  on_all([&](weft::runtime& rt) {
    std::vector<stencil> each(4, stencil(20));
    std::vector<long> sums(6);
    rt.run([&] {
      for (stencil& s : each)
        weft::fork(
            [](stencil& own) {
              weft::recorded step;
              for (int i = 0; i < 10; ++i) step([&] { own.fork(i); });
            },
            weft::update(borrow(s)));
      weft::recorded common;
      std::array<std::atomic<long>, 2> counts{};
      long order = 0;
      for (long& s : sums)
        weft::fork(
            [&](long& own) {
              for (int i = 0; i < 5; ++i)
                common([&] {
                  for (int k = 0; k < 20; ++k) weft::fork([&] { ++counts[0]; });
                  weft::fork([&] { ++counts[1]; });
                });
              weft::sync();
              ++own;
            },
            weft::update(borrow(s)));
      weft::sync();
      order = counts[0] * 1000 + counts[1];
      sums[0] += order;
    });
    for (const stencil& s : each) CHECK(s == expected);
    CHECK(sums == std::vector<long>{600031, 1, 1, 1, 1, 1});
  });
}

TEST_CASE("sync between the calls and inside the function") {
  const stencil expected = serial_stencil(30, 12);
  on_all([&](weft::runtime& rt) {
    stencil s(30);
    long seen = 0;
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 12; i += 2) {
        step([&] {
          s.fork(i);
          weft::sync();
          seen += s == serial_stencil(30, i + 1);
          s.fork(i + 1);
        });
        if (i % 4 == 0) weft::sync();
      }
    });
    CHECK(s == expected);
    CHECK(seen == 6);
  });
}

TEST_CASE("a task that throws in a replay, and the function itself") {
  on_all([](weft::runtime& rt) {
    weft_test::tracked::reset();
    std::vector<long> v(60);
    std::vector<std::string> caught;
    rt.run([&] {
      weft::recorded step;
      const auto call = [&](long bad, bool function_throws) {
        step([&] {
          for (long& x : v)
            weft::fork(
                [&, bad, t = weft_test::tracked(1)](long& y) {
                  if (&y == &v[40] && bad != 0) throw std::runtime_error("task " + std::to_string(bad));
                  ++y;
                },
                weft::update(borrow(x)));
          if (function_throws) throw std::runtime_error("function");
        });
      };
      for (const int round : {0, 1, 2}) {
        try {
          if (round == 0) call(0, true);
          for (int i = 0; i < 5; ++i) call(i == 3 ? round : 0, round == 2 && i == 4);
        } catch (const std::runtime_error& e) {
          caught.emplace_back(e.what());
        }
        try {
          weft::sync();
        } catch (const std::runtime_error& e) {
          caught.emplace_back(e.what());
        }
      }
    });
    CHECK(caught == std::vector<std::string>{"function", "task 1", "function", "task 2"});
    CHECK(v[0] >= 1 + 4 + 4);  // the next replay may have begun
    CHECK(v[40] == 1 + 3 + 3);
    CHECK(weft_test::tracked::alive == 0);
  });
}

TEST_CASE("parts of arrays, lists, contributions, commuting and weak tasks in a recorded graph") {
  on_all([](weft::runtime& rt) {
    constexpr std::size_t size = 96;
    weft::shared_array<long> a(size);
    weft::shared<std::string> text(std::string("<"));
    weft::shared<long> any(0L);
    std::vector<long> parts(8);
    long total = 0;
    const auto append = [](std::string l, const std::string& r) { return std::move(l) + r; };
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 9; ++i)
        step([&] {
          for (std::size_t k = 0; k < size; k += 12)
            weft::fork(
                [i](std::span<long> part) {
                  for (long& x : part) x = 3 * x + i;
                },
                weft::update(a.slice(k, 12)));
          for (std::size_t k = 6; k + 12 < size; k += 12)
            weft::fork([](std::span<long> part) { part.front() += part.back(); },
                       weft::update(a.slice(k, 12)));
          weft::fork(
              [](auto out) {
                for (int n = 0; n < 4; ++n)
                  weft::fork([n](auto t) { t += std::to_string(n); }, weft::reduce(out));
              },
              weft::weak_reduce(text, append));
          for (int n = 0; n < 4; ++n)
            weft::fork([n, i](auto t) { t += std::string(1, char('a' + (n + i) % 26)); },
                       weft::reduce(text, append));
          for (int n = 0; n < 10; ++n) weft::fork([n](long& x) { x += n; }, weft::commute(any));
          std::vector<weft::update<long>> list;
          for (long& p : parts) list.emplace_back(borrow(p));
          weft::fork(
              [](std::vector<weft::update<long>> all) {
                for (auto& p : all) *p += 1;
              },
              std::move(list));
          for (long& p : parts)
            weft::fork([](const long& x, long& sum) { sum = (5 * sum + x) % 1009; }, weft::read(borrow(p)),
                       weft::update(borrow(total)));
        });
    });
    std::vector<long> b(size);
    std::string expected = "<";
    long sum = 0;
    for (int i = 0; i < 9; ++i) {
      for (long& x : b) x = 3 * x + i;
      for (std::size_t k = 6; k + 12 < size; k += 12) b[k] += b[k + 11];
      expected += "0123";
      for (int n = 0; n < 4; ++n) expected += char('a' + (n + i) % 26);
      for (int p = 0; p < 8; ++p) sum = (5 * sum + i + 1) % 1009;
    }
    CHECK(std::equal(b.begin(), b.end(), a.get().begin(), a.get().end()));
    CHECK(text.get() == expected);
    CHECK(any.get() == 9 * 45);
    CHECK(total == sum);
  });
}

TEST_CASE("two recorded graphs that take turns, and one inside the other") {
  on_all([](weft::runtime& rt) {
    const stencil expected = serial_stencil(25, 18);
    stencil s(25), t(25);
    rt.run([&] {
      weft::recorded even, odd, around, inside;
      for (int i = 0; i < 18; ++i) (i % 2 == 0 ? even : odd)([&] { s.fork(i); });
      for (int i = 0; i < 18; i += 2)
        around([&] {
          t.fork(i);
          inside([&] { t.fork(i + 1); });
        });
    });
    CHECK(s == expected);
    CHECK(t == expected);
  });
}

TEST_CASE("a handle that ends before the tasks of its graph") {
  const stencil expected = serial_stencil(40, 15);
  on_all([&](weft::runtime& rt) {
    stencil s(40);
    rt.run([&] {
      for (int i = 0; i < 15; i += 5) {
        weft::recorded step;
        for (int k = i; k < i + 5; ++k) step([&] { s.fork(k); });
      }
    });
    CHECK(s == expected);
  });
  weft::recorded step;  // outside: for all runs, with the same objects
  stencil s(40);
  on_all([&](weft::runtime& rt) {
    s.reset();
    rt.run([&] {
      for (int i = 0; i < 15; ++i) step([&] { s.fork(i); });
    });
    CHECK(s == expected);
  });
}

TEST_CASE("graphs without tasks") {
  on_all([](weft::runtime& rt) {
    int calls = 0;
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 10; ++i) step([&] { ++calls; });
    });
    CHECK(calls == 10);
  });
}

TEST_CASE("random graphs, repeated") {
  weft_test::random seeds(weft_test::seed());
  for (int program = 0; program < 60; ++program) {
    const std::uint64_t seed = seeds();
    const unsigned workers = 1 + unsigned(seeds.below(4)), objects = 1 + unsigned(seeds.below(12));
    const unsigned tasks = 1 + unsigned(seeds.below(150));
    INFO("seed " << seed << ", workers " << workers);
    std::vector<long> v(objects, 1), w(objects, 1);
    std::vector<long> seen(tasks), expected(tasks);
    const auto each = [&](int i, auto&& change, auto&& look) {
      weft_test::random r(seed);
      for (unsigned k = 0; k < tasks; ++k) {
        const std::size_t a = r.below(objects), b = r.below(objects);
        if (r.one_in(2))
          change(a, b, i + int(k));
        else
          look(a, b, k);
      }
    };
    const auto mix = [](long& x, long y, int by) { x = (7 * x + 3 * y + by) % 1000003; };
    weft::runtime rt({.workers = workers, .inlining = false});
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 8; ++i)
        step([&] {
          each(
              i,
              [&](std::size_t a, std::size_t b, int by) {
                weft::fork([=](long& x, const long& y) { mix(x, y, by); }, weft::update(borrow(v[a])),
                           weft::read(borrow(v[b])));
              },
              [&](std::size_t a, std::size_t b, unsigned k) {
                weft::fork([=](const long& x, const long& y, long& out) { mix(out, x, int(y % 100)); },
                           weft::read(borrow(v[a])), weft::read(borrow(v[b])), weft::update(borrow(seen[k])));
              });
        });
    });
    for (int i = 0; i < 8; ++i)
      each(
          i, [&](std::size_t a, std::size_t b, int by) { mix(w[a], w[b], by); },
          [&](std::size_t a, std::size_t b, unsigned k) { mix(expected[k], w[a], int(w[b] % 100)); });
    CHECK(v == w);
    CHECK(seen == expected);
  }
}

#if WEFT_CHECKED

TEST_CASE("checked builds stop a program whose graph has changed") {
  const auto last_words = [](const weft::runtime_options& o, auto&& f) {
    const auto child = weft_test::run_in_child([&] {
      weft::runtime rt(o);
      std::array<long, 3> v{};
      rt.run([&] {
        weft::recorded step;
        for (const bool again : {false, true}) step([&] { f(v, again); });
      });
    });
    CHECK(child.aborted());
    return child.output;
  };
  const auto increment = [](long& x) { ++x; };
  for (const auto& o :
       {weft_test::alone_and_inlining(), weft_test::alone_and_deferring(), weft_test::two_and_deferring()}) {
    CHECK_THAT(last_words(o,
                          [&](auto& v, bool again) {
                            weft::fork(increment, weft::update(borrow(v[0])));
                            weft::fork({.name = "second"}, increment, weft::update(borrow(v[again ? 2 : 1])));
                          }),
               contains("weft: a recorded graph has changed: task 1, 'second', has rights on other objects"));
    CHECK_THAT(last_words(o,
                          [&](auto& v, bool again) {
                            if (again)
                              weft::fork({.name = "other"}, [](long& x) { --x; }, weft::update(borrow(v[0])));
                            else
                              weft::fork(increment, weft::update(borrow(v[0])));
                          }),
               contains("task 0, 'other', has another function or other kinds of arguments than recorded"));
    CHECK_THAT(last_words(o,
                          [&](auto& v, bool again) {
                            for (int i = 0; i < (again ? 3 : 2); ++i)
                              weft::fork({.name = "more"}, increment, weft::update(borrow(v[0])));
                          }),
               contains("'more' is one more task than the 2 that were recorded"));
    CHECK_THAT(last_words(o,
                          [&](auto& v, bool again) {
                            for (int i = 0; i < (again ? 1 : 2); ++i)
                              weft::fork(increment, weft::update(borrow(v[0])));
                          }),
               contains("a recorded graph has changed: 1 tasks instead of the 2 that were recorded"));
  }
}

TEST_CASE("checked builds compare parts of arrays and lists of rights, too") {
  weft_test::child_result child;
  const auto stopped = [&](auto&& f) {
    child = weft_test::run_in_child([&] {
      weft::runtime rt(weft_test::two_and_deferring());
      std::array<long, 3> v{};
      std::array<weft::shared_array<long>, 2> a{weft::shared_array<long>(10), weft::shared_array<long>(10)};
      rt.run([&] {
        weft::recorded step;
        for (const bool again : {false, true}) step([&] { f(v, a, again); });
      });
      std::printf("ran");
    });
    return child.aborted() &&
           child.output.find("task 0, 'both', has rights on other objects than recorded") !=
               std::string::npos;
  };
  const auto part = [](auto&& array, std::size_t from, std::size_t size) {
    weft::fork({.name = "both"}, [](std::span<long>) {}, weft::update(array.slice(from, size)));
  };
  CHECK(stopped([&](auto&, auto& a, bool again) { part(a[0], again ? 3 : 2, 4); }));
  CHECK(stopped([&](auto&, auto& a, bool again) { part(a[0], 2, again ? 3 : 4); }));
  CHECK(stopped([&](auto&, auto& a, bool again) { part(a[again ? 1 : 0], 2, 4); }));
  const auto list = [](auto& v, std::initializer_list<std::size_t> which) {
    std::vector<weft::update<long>> all;
    for (const std::size_t i : which) all.emplace_back(borrow(v[i]));
    weft::fork({.name = "both"}, [](std::vector<weft::update<long>>) {}, std::move(all));
  };
  CHECK(stopped([&](auto& v, auto&, bool again) { again ? list(v, {0, 2}) : list(v, {0, 1}); }));
  CHECK(stopped([&](auto& v, auto&, bool again) { again ? list(v, {0, 1, 2}) : list(v, {0, 1}); }));
  CHECK(stopped([&](auto& v, auto&, bool again) { again ? list(v, {0}) : list(v, {0, 1}); }));
  CHECK_FALSE(stopped([&](auto& v, auto& a, bool) {  // control
    list(v, {0, 1});
    part(a[0], 2, 4);
  }));
  CHECK(child.exit_code == 0);
  CHECK(child.output == "ran");
}

#else

TEST_CASE("a graph that has changed is executed like any other") {
  for (int change = 0; change < 5; ++change) {
    INFO("change " << change);
    on_all([&](weft::runtime& rt) {
      std::vector<long> v(30, 1), w(30, 1);
      weft::shared_array<long> a(60);
      std::vector<long> b(60);
      const auto mix = [](long& x, long y) { x = (7 * x + y) % 1000003; };
      const auto graph = [&](int i, auto&& one, auto&& other, auto&& part) {
        const bool odd = i % 4 == 3;
        const std::size_t n = v.size() - (odd && change == 0 ? 5 : 0);
        for (std::size_t k = 0; k < n; ++k) {
          const std::size_t from = odd && change == 1 && k > 10 ? (k + 3) % 30 : (k + 1) % 30;
          if (odd && change == 2 && k == 15)
            other(k, from);
          else
            one(k, from);
          if (odd && change == 3 && k == 20) other(5, 6);
          part(k, odd && change == 4 && k > 5 ? k + 3 : k);
        }
      };
      rt.run([&] {
        weft::recorded step;
        for (int i = 0; i < 12; ++i)
          step([&] {
            graph(
                i,
                [&](std::size_t x, std::size_t y) {
                  weft::fork([=](long& p, const long& q) { mix(p, q); }, weft::update(borrow(v[x])),
                             weft::read(borrow(v[y])));
                },
                [&](std::size_t x, std::size_t y) {
                  weft::fork([=](long& p, const long& q) { mix(p, q + 1); }, weft::update(borrow(v[x])),
                             weft::read(borrow(v[y])));
                },
                [&](std::size_t k, std::size_t at) {
                  weft::fork([=](std::span<long> s) { mix(s[0], s[1] + long(k)); },
                             weft::update(a.slice(at, 2)));
                });
          });
      });
      for (int i = 0; i < 12; ++i)
        graph(
            i, [&](std::size_t x, std::size_t y) { mix(w[x], w[y]); },
            [&](std::size_t x, std::size_t y) { mix(w[x], w[y] + 1); },
            [&](std::size_t k, std::size_t at) { mix(b[at], b[at + 1] + long(k)); });
      CHECK(v == w);
      CHECK(std::equal(b.begin(), b.end(), a.get().begin(), a.get().end()));
    });
  }
}

TEST_CASE("results and objects of the function's own are right, though not replayed") {
  on_all([](weft::runtime& rt) {
    long sum = 0;
    rt.run([&] {
      weft::recorded step;
      for (int i = 0; i < 10; ++i)
        step([&] {
          weft::shared<long> own(long{i});
          for (int k = 0; k < 20; ++k) {
            const auto r = weft::fork([](long& x) { return ++x; }, weft::update(own));
            weft::fork([](const long& x, long& s) { s = (3 * s + x) % 1009; }, weft::read(r),
                       weft::update(borrow(sum)));
          }
        });
    });
    long expected = 0;
    for (int i = 0; i < 10; ++i)
      for (int k = 0; k < 20; ++k) expected = (3 * expected + i + k + 1) % 1009;
    CHECK(sum == expected);
  });
}

#endif

TEST_CASE("a recorded graph outside a task is a contract violation") {
  const auto child = weft_test::run_in_child([] {
    weft::recorded step;
    step([] {});
  });
  CHECK(child.aborted());
  CHECK_THAT(child.output, contains("weft: a recorded graph was called outside a task"));
}
