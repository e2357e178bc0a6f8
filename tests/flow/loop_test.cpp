// SPDX-License-Identifier: BSL-1.0
// Loops as tasks: what is called, in which order, with which rights; how they are divided, fail and stop.
#include "flow/runtimes.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::wait_until;

namespace {

/// Calls of a loop's function, in the order in which they came.
class calls {
 public:
  void add(int i) {
    const std::lock_guard hold(mutex_);
    all_.push_back(i);
  }
  std::vector<int> sorted() {
    std::vector<int> all = all_;
    std::ranges::sort(all);
    return all;
  }
  const std::vector<int>& in_order() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<int> all_;
};

std::vector<int> from_to(int first, int last) {
  std::vector<int> all(static_cast<std::size_t>(last - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Two bodies that are called at the same time, at some time. The first one to come waits for another.
class meeting {
 public:
  void come() {
    if (++here_ >= 2) met_ = true;
    if (!gave_up_ && !wait_until([this] { return met_.load(); })) gave_up_ = true;
    --here_;
  }
  bool took_place() const { return met_; }

 private:
  std::atomic<int> here_{0};
  std::atomic<bool> met_{false}, gave_up_{false};
};

}  // namespace

TEST_CASE("a loop calls its function for each index once") {
  on_each_runtime([](weft::runtime& rt) {
    for (const int n : {0, 1, 2, 3, 100, 1000})
      for (const std::size_t grain : {0u, 1u, 7u, 5000u}) {
        calls seen;
        rt.run([&] { weft::fork_for({.grain = grain}, -3, n - 3, [&seen](int i) { seen.add(i); }); });
        CHECK(seen.sorted() == from_to(-3, n - 3));
      }
  });
}

TEST_CASE("one worker runs a loop in its order, undivided") {
  weft::runtime rt({.workers = 1});
  calls seen;
  rt.run([&] { weft::fork_for(0, 1000, [&seen](int i) { seen.add(i); }); });
  CHECK(seen.in_order() == from_to(0, 1000));
  CHECK(rt.counters().divisions == 0);
}

TEST_CASE("a loop may have any type of index, and the whole range of it") {
  weft::runtime rt({.workers = 2});
  std::atomic<int> count{0};
  rt.run([&] {
    weft::fork_for(std::numeric_limits<signed char>::min(), std::numeric_limits<signed char>::max(),
                   [&](signed char) { ++count; });
    weft::fork_for({.grain = std::numeric_limits<std::size_t>::max()}, 250, std::uint8_t{255},
                   [&](std::uint8_t) { ++count; });
    weft::fork_for(std::numeric_limits<std::uint64_t>::max() - 10, std::numeric_limits<std::uint64_t>::max(),
                   [&](std::uint64_t) { ++count; });
    weft::fork_for({.grain = 3'000'000'000}, std::numeric_limits<int>::min(),
                   std::numeric_limits<int>::min() + 5, [&](int) { ++count; });
    weft::fork_for({}, 5, 5, [&](int) { ++count; });
    weft::fork_for(5, -5, [&](int) { ++count; });
    weft::sync();
    CHECK(count == 255 + 5 + 10 + 5);
    count = 0;
    // Far too many to be run: the exception ends them.
    weft::fork_for(std::numeric_limits<long>::min(), std::numeric_limits<long>::max(), [&](long i) {
      if (i == std::numeric_limits<long>::min()) throw std::length_error("enough");
      throw std::out_of_range("of a part");
    });
    CHECK_THROWS_AS(weft::sync(), std::length_error);
  });
}

TEST_CASE("a function may take several indices at once") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> sum(0L);
    calls seen;
    std::atomic<int> wrong{0};
    rt.run(
        [&](weft::update<long> s) {
          weft::fork_for(
              {.grain = 7}, 3, 100L,
              [&](weft::indices<long> part, auto to) {
                wrong += part.first >= part.last || part.last - part.first > 7;
                long all = 0;
                for (const long i : part) {
                  seen.add(static_cast<int>(i));
                  all += i;
                }
                to += all;
              },
              weft::reduce(s, std::plus<>{}));
        },
        sum);
    CHECK(sum.get() == 99 * 50 - 3);
    CHECK(seen.sorted() == from_to(3, 100));
    CHECK(wrong == 0);
  });
}

TEST_CASE("thieves get parts of a loop") {
  for (const unsigned workers : {2u, 4u}) {
    weft::runtime rt({.workers = workers});
    meeting m;
    calls seen;
    rt.run([&] {
      weft::fork_for(0, 1000, [&](int i) {
        m.come();
        seen.add(i);
      });
    });
    CHECK(m.took_place());
    CHECK(seen.sorted() == from_to(0, 1000));
    CHECK(rt.counters().divisions > 0);
    CHECK(rt.counters().steals > 0);
    CHECK(rt.counters().divisions < 500);  // not as many as iterations: parts that nobody takes stay whole
  }
}

TEST_CASE("contributions of a loop are folded in its order, wherever its parts run") {
  const auto join = [](std::string a, std::string b) { return std::move(a) + b; };
  std::string expected;
  for (int i = 0; i < 300; ++i) expected += std::to_string(i) + ' ';
  on_each_runtime([&](weft::runtime& rt) {
    weft::shared<std::string> all("");
    meeting m;
    rt.run(
        [&](weft::update<std::string> to) {
          weft::fork_for(
              0, 300,
              [&](int i, auto out) {
                if (rt.workers() > 1) m.come();
                out += std::to_string(i) + ' ';
              },
              weft::reduce(to, join));
          // Whoever reads it waits for all of them, and hinders none.
          weft::fork([&](const std::string& text) { CHECK(text == expected); }, weft::read(to));
        },
        all);
    CHECK(all.get() == expected);
    CHECK(m.took_place() == (rt.workers() > 1));
  });
}

TEST_CASE("a loop that updates, writes or commutes stays one task in order") {
  weft::runtime rt({.workers = 4});
  weft::shared<std::vector<int>> list;
  weft::shared<int> last, count(0);
  weft::shared_array<int> squares(100);
  rt.run(
      [&](weft::update<std::vector<int>> l, weft::write<int> w, weft::update<int> c) {
        weft::fork_for(0, 100, [](int i, std::vector<int>& v) { v.push_back(i); }, l);
        weft::fork_for(0, 100, [](int i, weft::write<int> to) { *to = i; }, w);
        weft::fork_for(0, 100, [](int, weft::commute<int> n) { ++*n; }, c);
        weft::fork_for(
            0, 100, [](int i, std::span<int> part) { part[std::size_t(i)] = i * i; },
            weft::write(squares.slice(0, 100)));
      },
      list, last, count);
  CHECK(list.get() == from_to(0, 100));
  CHECK(last.get() == 99);
  CHECK(count.get() == 100);
  CHECK(squares.get()[99] == 99 * 99);
  CHECK(rt.counters().divisions == 0);
}

TEST_CASE("the function of a loop gets rights, values and lists as that of a task") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> two(2), three(3);
    weft::shared<long> sum(0L);
    weft::shared_array<int> numbers(50);
    rt.run(
        [&](weft::read<int> a, weft::read<int> b, weft::update<long> s) {
          weft::fork([](std::span<int> all) { std::iota(all.begin(), all.end(), 0); },
                     weft::write(numbers.slice(0, 50)));
          weft::fork_for(
              std::size_t{0}, numbers.size(),
              [](std::size_t i, const int& x, weft::read<int> y, std::span<const int> all,
                 const std::vector<weft::read<int>>& list, const std::string& text,
                 weft::reduce<long, std::plus<>> to) {
                to += (x + *y) * all[i] + *list[0] * *list[1] + static_cast<long>(text.size());
              },
              a, b, weft::read(numbers.slice(0, 50)), std::vector{a, b}, std::string("four"),
              weft::reduce(s, std::plus<>{}));
        },
        two, three, sum);
    CHECK(sum.get() == 5 * 49 * 25 + 50 * 6 + 50 * 4);
  });
}

TEST_CASE("what a loop forks with weak rights has its place in the order") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::vector<int>> list;
    rt.run(
        [](weft::update<std::vector<int>> l) {
          weft::fork_for(
              0, 50,
              [](int i, weft::weak_update<std::vector<int>> to) {
                weft::fork([i](std::vector<int>& v) { v.push_back(i); }, weft::update(to));
              },
              weft::weak_update(l));
        },
        list);
    CHECK(list.get() == from_to(0, 50));
  });
}

TEST_CASE("iterations may fork, wait, loop and fail") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> count{0}, wrong{0};
    rt.run([&] {
      weft::fork_for(0, 20, [&](int) {
        weft::shared<int> x;
        weft::fork([](int& v) { v = 7; }, weft::write(x));
        weft::fork_for(0, 10, [&](int, int v) { count += v; }, 1);
        weft::sync();
        wrong += x.get() != 7;
      });
    });
    CHECK(count == 200);
    CHECK(wrong == 0);
    for (const int first : {0, 5, 99}) {
      const auto fail = [&] {
        weft::fork_for(0, 100, [first](int i) {
          if (i >= first) throw std::runtime_error(std::to_string(i));
        });
      };
      CHECK_THROWS_WITH(rt.run(fail), std::to_string(first));
    }
  });
}

TEST_CASE("a loop that is stopped ends soon") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> count{0};
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork_for(0, std::numeric_limits<int>::max(), [&](int) {
        if (++count == 100) weft::this_task::request_stop();
      });
    }),
                    weft::cancelled);
    CHECK(count < 1'000'000);
    weft::shared<int> x(0);
    CHECK_THROWS_AS(rt.run(
                        [&](weft::update<int> to) {
                          weft::fork_for(
                              0, std::numeric_limits<int>::max(),
                              [](int i, int& v) {
                                if (++v; i == 100) weft::this_task::request_stop();
                              },
                              to);
                        },
                        x),
                    weft::cancelled);
    CHECK(x.get() == 101);
  });
}

TEST_CASE("parts behind one that throws end soon") {
  for (const std::size_t grain : {1u, 100u}) {
    weft::runtime rt({.workers = 2});
    std::atomic<bool> begun{false};
    std::atomic<int> behind{0};
    const int all = 400'000'000;
    CHECK_THROWS_WITH(rt.run([&] {
      weft::fork_for({.grain = grain}, 0, all, [&](int i) {
        if (i >= all / 2)
          begun = true, ++behind;
        else if (begun)
          throw std::runtime_error("the first");
      });
    }),
                      "the first");
    CHECK(behind < all / 4);
  }
}

TEST_CASE("each part of a loop has its copies, and a name") {
  struct counted {
    explicit counted(std::atomic<int>& c) : copies(c) {}
    counted(const counted& other) : copies(other.copies) {
      if (++copies == 3) throw std::bad_alloc();
    }
    std::atomic<int>& copies;
  };
  weft::runtime rt({.workers = 2});
  meeting m;
  std::atomic<int> wrong{0};
  rt.run([&] {
    weft::fork_for({.name = "rows", .priority = 2}, 0, 100, [&m, &wrong, own = 0](int) mutable {
      ++own;
      wrong += own > 100 || weft::this_task::name() != std::string("rows");
      m.come();
    });
  });
  CHECK(m.took_place());
  CHECK(wrong == 0);
  // A copy that throws ends the loop where it was to be divided.
  std::atomic<int> copies{0};
  std::atomic<int> last{-1};
  CHECK_THROWS_AS(rt.run([&] {
    weft::fork_for(
        0, 1000,
        [&last](int i, const counted&) {
          std::this_thread::sleep_for(std::chrono::microseconds(50));
          last = i;
        },
        counted(copies));
  }),
                  std::bad_alloc);
  CHECK(last < 999);
}

TEST_CASE("tasks that contribute run at the same time, deep down and before one that reads") {
  for (const int levels : {0, 1, 5}) {
    weft::runtime rt({.workers = 2});
    weft::shared<long> sum(0L);
    meeting m;
    struct nest {
      static void dive(meeting& m, int levels, weft::reduce<long, std::plus<>> to) {
        if (levels == 0) {
          for (int i = 0; i < 2; ++i)
            weft::fork(
                [&m, text = std::string(100, '.')](weft::reduce<long, std::plus<>> r) {
                  m.come();
                  r += static_cast<long>(text.size()) / 100;
                },
                to);
        } else {
          weft::fork(dive, std::ref(m), levels - 1, to);
        }
      }
    };
    rt.run(
        [&](weft::update<long> s) {
          weft::fork(nest::dive, std::ref(m), levels, weft::reduce(s, std::plus<>{}));
          weft::fork([](const long& v) { CHECK(v == 2); }, weft::read(s));
        },
        sum);
    INFO("below " << levels);
    CHECK(m.took_place());
    CHECK(sum.get() == 2);
  }
}
