// SPDX-License-Identifier: BSL-1.0
// The rights commute and reduce, weak rights, lists of rights, and parts of arrays.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

/// Keeps a body busy for a while that differs from task to task.
void dawdle(int i) {
  for (int k = 0; k < (i * 7919) % 400; ++k) asm volatile("" : : "r"(k));  // keeps the loop
}

struct last_or_first {  // associative, not commutative
  std::string operator()(std::string a, const std::string& b) const { return std::move(a) + b; }
};

}  // namespace

TEST_CASE("contributions are folded in reference order") {
  std::string expected = "<";
  for (int i = 0; i < 200; ++i) expected += std::to_string(i) + (i % 3 == 0 ? "" : ",");
  on_each_runtime([&](weft::runtime& rt) {
    weft::shared<std::string> text(std::string("<"));
    rt.run([&] {
      for (int i = 0; i < 200; ++i)
        weft::fork(
            [i](auto out) {
              out += std::to_string(i);
              dawdle(i);
              if (i % 3 != 0) out += std::string(",");
            },
            weft::reduce(text, last_or_first{}));
    });
    CHECK(text.get() == expected);
  });
}

TEST_CASE("contributions with different operations, readers and writers are ordered among each other") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> x(1L);
    std::vector<long> seen(40);
    rt.run([&] {
      for (int i = 0; i < 40; ++i) {
        for (int k = 0; k < 5; ++k) weft::fork([](auto t) { t += 3L; }, weft::reduce(x, std::plus<>{}));
        for (int k = 0; k < 2; ++k) weft::fork([](auto t) { t += 2L; }, weft::reduce(x, std::multiplies<>{}));
        weft::fork([&seen, i](const long& v) { seen[static_cast<std::size_t>(i)] = v; }, weft::read(x));
        weft::fork([](long& v) { v %= 1009; }, weft::update(x));
      }
    });
    long v = 1;
    for (const long s : seen) {
      v = (v + 15) * 4;
      CHECK(s == v);
      v %= 1009;
    }
  });
}

TEST_CASE("a body may contribute to several objects, and nothing") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::string> a(std::string{}), b(std::string{});
    rt.run([&] {
      for (int i = 0; i < 60; ++i)
        weft::fork(
            [i](auto x, auto y) {
              dawdle(i);
              if (i % 2 == 0) x += std::string(1, static_cast<char>('a' + i % 26));
              if (i % 3 == 0) y += std::string(1, static_cast<char>('A' + i % 26));
            },
            weft::reduce(a, last_or_first{}), weft::reduce(b, last_or_first{}));
    });
    std::string c, d;
    for (int i = 0; i < 60; ++i) {
      if (i % 2 == 0) c += static_cast<char>('a' + i % 26);
      if (i % 3 == 0) d += static_cast<char>('A' + i % 26);
    }
    CHECK(a.get() == c);
    CHECK(b.get() == d);
  });
}

TEST_CASE("contributions before and after a failure") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    weft::shared<std::string> text(std::string{});
    CHECK_THROWS_AS(rt.run([&] {
      for (int i = 0; i < 100; ++i)
        weft::fork(
            [i, t = tracked(i)](auto out) {
              dawdle(i);
              out += std::to_string(i % 10);
              if (i == 42) throw std::runtime_error("42");
            },
            weft::reduce(text, last_or_first{}));
    }),
                    std::runtime_error);
    std::string expected;
    for (int i = 0; i <= 42; ++i) expected += std::to_string(i % 10);
    CHECK(text.get() == expected);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("an operation that throws") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> x(0);
    const auto op = [](int a, int b) {
      if (b == 30) throw std::runtime_error("no");
      return a + b;
    };
    CHECK_THROWS_AS(rt.run([&] {
      for (int i = 0; i < 60; ++i) weft::fork([i](auto t) { t += i; }, weft::reduce(x, op));
    }),
                    std::runtime_error);
    CHECK(rt.run([] { return 1; }) == 1);
  });
}

TEST_CASE("tasks that commute are never inside at the same time, and all run") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::vector<int>> bag;
    weft::shared<int> other(0);
    std::atomic<int> inside{0}, together{0}, wrong{0};
    rt.run([&] {
      for (int i = 0; i < 150; ++i) {
        weft::fork(
            [&, i](std::vector<int>& v) {
              together += inside.fetch_add(1) != 0;
              v.push_back(i);
              dawdle(i);
              inside.fetch_sub(1);
            },
            weft::commute(bag));
        if (i % 10 == 9)
          weft::fork([](std::vector<int>& v, int& o) { o += static_cast<int>(v.size()); }, weft::commute(bag),
                     weft::commute(other));
        if (i % 50 == 49)
          weft::fork([&](const std::vector<int>& v) { wrong += v.size() % 50 != 0; }, weft::read(bag));
      }
    });
    CHECK(together == 0);
    CHECK(wrong == 0);
    std::vector<int> all = bag.get();
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == 150);
    for (int i = 0; i < 150; ++i) CHECK(all[static_cast<std::size_t>(i)] == i);
  });
}

namespace {

void add(long k, weft::update<long> v) { *v = *v * 3 + k; }
void sweep(long k, std::vector<weft::weak_update<long>> blocks) {
  for (auto& b : blocks) weft::fork(add, k, b);
}
void sweep_twice(long k, std::vector<weft::weak_update<long>> blocks) {
  weft::fork(sweep, k, blocks);
  weft::fork(sweep, k + 1, std::move(blocks));
}

}  // namespace

TEST_CASE("children of weak tasks are ordered by the data they touch, across generations") {
  on_each_runtime([](weft::runtime& rt) {
    std::deque<weft::shared<long>> blocks;
    for (int i = 0; i < 40; ++i) blocks.emplace_back(long{i});
    rt.run([&] {
      for (long k = 0; k < 6; k += 2) {
        std::vector<weft::weak_update<long>> all;
        for (auto& b : blocks) all.push_back(weft::weak_update(b));
        weft::fork({.name = "sweeps"}, sweep_twice, k, std::move(all));
        weft::fork([](long& v) { ++v; }, weft::update(blocks[7]));
      }
    });
    for (int i = 0; i < 40; ++i) {
      long v = i;
      for (long k = 0; k < 6; k += 2) {
        v = (v * 3 + k) * 3 + k + 1;
        if (i == 7) ++v;
      }
      CHECK(blocks[static_cast<std::size_t>(i)].get() == v);
    }
  });
}

TEST_CASE("a weak task starts while what it names is still being written") {
  weft::runtime rt({.workers = 2});
  weft::shared<int> x(0);
  bool started_early = false;
  rt.run([&] {
    std::atomic<bool> weak_started{false};
    weft::fork({.event = true}, [](int&) {}, weft::update(x));  // deferred
    weft::fork(
        [&](weft::weak_update<int> w) {
          weak_started = true;
          weft::fork([](int& v) { v += 1; }, weft::update(w));
        },
        weft::weak_update(x));
    started_early = weak_started;
    weft::sync();
  });
  CHECK(started_early);
  CHECK(x.get() == 1);
}

TEST_CASE("failures of weak tasks and below stand at their place") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> x(0), y(0);
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork(
          [](weft::weak_update<int> w) {
            weft::fork([](int& v) { v = 1; }, weft::update(w));
            weft::fork([](int&) { throw 5; }, weft::update(w));
            throw std::runtime_error("later");
          },
          weft::weak_update(x));
      weft::fork([](int& v) { v = 1; }, weft::update(y));
    }),
                    int);
    CHECK(x.get() == 1);
  });
}

TEST_CASE("lists of rights") {
  on_each_runtime([](weft::runtime& rt) {
    std::deque<weft::shared<long>> cells;
    for (int i = 0; i < 30; ++i) cells.emplace_back(long{i});
    std::vector<long> expected(30);
    std::iota(expected.begin(), expected.end(), 0);
    rt.run([&] {
      for (int t = 0; t < 200; ++t) {
        std::vector<weft::read<long>> in;
        std::list<weft::update<long>> out;
        const std::size_t first = static_cast<std::size_t>(t * 7 % 30),
                          count = static_cast<std::size_t>(t % 5);
        for (std::size_t i = 0; i < count; ++i) in.push_back(weft::read(cells[(first + i) % 30]));
        for (std::size_t i = 5; i < 5 + count; ++i) out.push_back(weft::update(cells[(first + i) % 30]));
        long sum = t;
        for (std::size_t i = 0; i < count; ++i) sum += expected[(first + i) % 30];
        for (std::size_t i = 5; i < 5 + count; ++i)
          expected[(first + i) % 30] = (expected[(first + i) % 30] * 5 + sum) % 9973;
        weft::fork(
            [t](std::vector<weft::read<long>> ins, std::list<weft::update<long>> outs) {
              long s = t;
              for (const auto& v : ins) s += *v;
              for (const auto& v : outs) *v = (*v * 5 + s) % 9973;
            },
            std::move(in), std::move(out));
      }
    });
    for (std::size_t i = 0; i < 30; ++i) CHECK(cells[i].get() == expected[i]);
  });
}

TEST_CASE("an object twice among a task's rights: the stronger one counts") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> x(0);
    std::atomic<int> wrong{0};
    rt.run([&] {
      for (int i = 0; i < 50; ++i) {
        std::vector<weft::update<int>> twice{weft::update(x), weft::update(x)};
        weft::fork([](std::vector<weft::update<int>> v) { *v[0] += 1, *v[1] += 1; }, std::move(twice));
        std::vector<weft::read<int>> reads{weft::read(x), weft::read(x), weft::read(x)};
        weft::fork([&](std::vector<weft::read<int>> v) { wrong += *v[0] % 2 != 0; }, std::move(reads));
      }
    });
    CHECK(x.get() == 100);
    CHECK(wrong == 0);
  });
}

TEST_CASE("parts of an array are ordered where they overlap") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared_array<long> a(100);
    std::atomic<int> wrong{0};
    std::vector<long> expected(100);
    rt.run([&] {
      for (long t = 0; t < 300; ++t) {
        const std::size_t first = static_cast<std::size_t>(t * 37 % 90),
                          count = static_cast<std::size_t>(t % 11);
        weft::fork(
            [t](std::span<long> s) {
              for (long& v : s) v = (v * 3 + t) % 10007;
            },
            weft::update(a.slice(first, count)));
        for (std::size_t i = first; i < first + count; ++i) expected[i] = (expected[i] * 3 + t) % 10007;
        if (t % 10 == 0) {
          long sum = 0;
          for (std::size_t i = first; i < first + 10; ++i) sum += expected[i];
          weft::fork([&wrong,
                      sum](weft::read<long[]> s) { wrong += std::accumulate(s.begin(), s.end(), 0L) != sum; },
                     a.slice(first, 10));
        }
      }
    });
    CHECK(wrong == 0);
    CHECK(std::equal(expected.begin(), expected.end(), a.get().begin()));
  });
}

TEST_CASE("rights on parts are narrowed and delegated") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared_array<int> a(64), b(64);
    rt.run([&] {
      weft::fork(
          [](weft::weak_update<int[]> w, weft::write<int[]> other) {
            for (std::size_t i = 0; i < 64; i += 16)
              weft::fork(
                  [](weft::update<int[]> part) {
                    weft::fork(
                        [](std::span<int> s) {
                          for (int& v : s) v = 1;
                        },
                        weft::write(part.slice(0, 8)));
                    weft::fork(
                        [](std::span<int> s) {
                          for (int& v : s) v = 2;
                        },
                        part.slice(8, 8));
                  },
                  w.slice(i, 16));
            weft::fork(
                [](std::span<int> s) {
                  for (int& v : s) v = 5;
                },
                other);
            weft::fork([](std::span<const int>) {}, weft::read(weft::update<int[]>(w)).slice(3, 0));
          },
          weft::weak_update(a.all()), weft::write(b.all()));
    });
    CHECK(std::accumulate(a.get().begin(), a.get().end(), 0) == 96);
    CHECK(std::accumulate(b.get().begin(), b.get().end(), 0) == 320);
  });
}

TEST_CASE("a part beyond its array is refused, an empty one is legal") {
  weft::shared_array<int> a(10);
  CHECK_NOTHROW(a.slice(10, 0));
  CHECK_THROWS_AS(a.slice(11, 0), std::out_of_range);
  CHECK_THROWS_AS(a.slice(5, 6), std::out_of_range);
  CHECK_THROWS_AS(a.slice(1, SIZE_MAX), std::out_of_range);
  CHECK_THROWS_WITH(a.slice(5, 6), "weft: slice [5, 11) of 10 elements");
  weft::shared_array<int> none(0);
  weft::runtime rt({.workers = 2});
  int ran = 0;
  rt.run([&] {
    weft::fork([&ran](std::span<int> s) { ran = 1 + static_cast<int>(s.size()); }, weft::write(none.all()));
  });
  CHECK(ran == 1);
}

namespace {

/// Whether a task that is to write `x`, and that `fork_writer` forks, runs while one that reads it does.
template <class Object, class F>
bool overlaps(weft::runtime& rt, Object& x, F&& fork_writer, std::chrono::milliseconds patience) {
  std::atomic<bool> written{false}, seen{false}, right{false};
  rt.run([&] {
    weft::fork(
        [&](const std::string& old) {
          const auto end = std::chrono::steady_clock::now() + patience;
          while (!written.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
          seen = written.load() && old == "old";
        },
        weft::read(x));
    fork_writer(written);
    weft::fork([&](const std::string& now) { right = now == "new"; }, weft::read(x));
  });
  CHECK(right.load());
  return seen;
}

}  // namespace

TEST_CASE("a task that writes runs while others read the old value") {
  weft::runtime rt({.workers = 2, .inlining = false});
  constexpr std::chrono::seconds long_time(30);
  constexpr std::chrono::milliseconds moment(20);
  const auto set = [](std::atomic<bool>& done) {
    return [&done](std::string& s) {
      s = "new";
      done = true;
    };
  };
  {
    weft::shared<std::string> x(std::string("old"));
    CHECK(overlaps(rt, x, [&](auto& done) { weft::fork(set(done), weft::write(x)); }, long_time));
    CHECK(x.get() == "new");
  }
  {
    weft::shared<std::string> x(std::string("old"));
    const auto declared = [](weft::write<std::string> s, std::atomic<bool>* done) {
      s = "new";
      *done = true;
    };
    CHECK(overlaps(rt, x, [&](auto& done) { weft::fork(declared, x, &done); }, long_time));
    CHECK(x.get() == "new");
  }
  CHECK(rt.counters().renames == 2);
  {
    std::string mine("old");  // memory of the program's own is never renamed
    auto x = weft::borrow(mine);
    CHECK_FALSE(overlaps(rt, x, [&](auto& done) { weft::fork(set(done), weft::write(x)); }, moment));
    CHECK(mine == "new");
  }
  {
    weft::shared<std::string> x(std::string("old"));
    CHECK_FALSE(overlaps(rt, x, [&](auto& done) { weft::fork(set(done), weft::update(x)); }, moment));
  }
  CHECK(rt.counters().renames == 2);
  weft::runtime single({.workers = 2, .inlining = false, .versions = 1});
  weft::shared<std::string> x(std::string("old"));
  CHECK_FALSE(overlaps(single, x, [&](auto& done) { weft::fork(set(done), weft::write(x)); }, moment));
}

TEST_CASE("renamed objects reach rights in lists, contributions, nested tasks and later frames") {
  on_each_runtime([](weft::runtime& rt) {
    long expected = 0, sum = 0;
    std::atomic<int> wrong{0};
    for (long i = 0; i < 120; ++i) expected = expected * 3 % 1000003 + 4 * (100 + i) + 1;
    weft::shared<std::vector<long>> x(std::vector<long>{0});
    rt.run([&] {
      weft::shared<long> total(0L);
      for (int round = 0; round < 2; ++round) {
        for (long i = 60 * round; i < 60 * round + 60; ++i) {
          weft::fork([i](weft::write<std::vector<long>> v) { v = std::vector<long>(1, i); }, x);
          weft::fork(
              [&wrong](weft::update<std::vector<long>> v) {  // hands it on
                weft::fork([](std::vector<long>& w) { w[0] += 100; }, v);
                weft::sync();
                weft::fork([&wrong](weft::read<std::vector<long>> r) { wrong += r->size() != 1; }, v);
              },
              x);
          weft::fork([](const std::vector<weft::read<std::vector<long>>>& all,
                        long& t) { t = t * 3 % 1000003 + 4 * (*all[0])[0] + 1; },
                     std::vector<weft::read<std::vector<long>>>{x}, weft::update(total));
        }
        weft::sync();
        CHECK(x.get()[0] == 100 + 60 * round + 59);
      }
      sum = total.get();
    });
    CHECK(sum == expected);
    CHECK(wrong == 0);
    CHECK(x.get()[0] == 219);
  });
}

TEST_CASE("a failure among versions leaks nothing, and keeps what was there before") {
  struct noted {
    static std::atomic<int>& alive() {
      static std::atomic<int> n{0};
      return n;
    }
    int value = -1;
    noted() noexcept { ++alive(); }
    explicit noted(int v) noexcept : value(v) { ++alive(); }
    noted& operator=(noted&& o) noexcept {
      value = o.value;
      return *this;
    }
    ~noted() { --alive(); }
  };
  on_each_runtime([](weft::runtime& rt) {
    for (int failing = 0; failing < 40; failing += 7) {
      {
        weft::shared<noted> x(1000);
        std::atomic<int> wrong{0};
        CHECK_THROWS_AS(rt.run([&] {
          for (int i = 0; i < 40; ++i) {
            weft::fork([i](noted& n) { n.value = i; }, weft::write(x));
            weft::fork(
                [&wrong, i, failing](const noted& n) {
                  dawdle(i);
                  wrong += n.value != i;
                  if (i == failing) throw std::runtime_error("planned");
                },
                weft::read(x));
          }
        }),
                        std::runtime_error);
        CHECK(wrong == 0);
        CHECK(x.get().value >= 0);
        if (rt.counters().renames == 0) CHECK(x.get().value == failing);
      }
      CHECK(noted::alive() == 0);
    }
  });
}
