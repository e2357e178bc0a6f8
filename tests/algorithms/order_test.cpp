// SPDX-License-Identifier: BSL-1.0
// What rearranges elements; divide and conquer; pipelines.
#include "algorithms/against_std.hpp"
#include "support/tracked.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

using namespace weft_test;

namespace {

/// A key with its place, of three sizes: copied by registers, by memory, and not at all.
using pair = std::pair<std::uint32_t, std::uint32_t>;
struct large {
  pair of;
  std::string text;
  friend bool operator==(const large&, const large&) = default;
};

std::vector<pair> pairs(std::size_t n, weft_test::random& r) {
  std::vector<pair> v(n);
  const number kinds = 1 + r.below(n + 1);
  for (std::size_t i = 0; i < n; ++i) v[i] = {std::uint32_t(r.below(kinds)), std::uint32_t(i)};
  return v;
}
std::vector<large> large_ones(const std::vector<pair>& v) {
  std::vector<large> all;
  for (const pair& p : v) all.push_back({p, "a text that is longer than any short one"});
  return all;
}
std::vector<only_moved> only_moved_ones(const std::vector<pair>& v) {
  std::vector<only_moved> all;
  for (const pair& p : v) all.emplace_back(number(p.first) << 32 | p.second);
  return all;
}
constexpr auto key_of = [](const only_moved& e) { return e.get() >> 32; };

/// As they were, already in order, in the opposite one, with few kinds: patterns that mislead pivots.
void arrange(std::vector<number>& v, number how) {
  if (how == 1) std::ranges::sort(v);
  if (how == 2) std::ranges::sort(v, std::greater<>());
  if (how == 3)
    for (number& e : v) e %= 3;
  if (how == 4)
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = i % 2 == 0 ? i : v.size() - i;
}

}  // namespace

TEST_CASE("numbers are sorted") {
  on_all_sizes(60'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    for (number how = 0; how < 5; ++how) {
      std::vector<number> v = numbers(n, r, ~number(0)), w;
      arrange(v, how);
      w = v;
      std::ranges::sort(w);
      std::vector<number> x = v, y = v, z = v;
      weft::sort(rt, x);
      CHECK(x == w);
      rt.run([&] { weft::stable_sort(y); });
      CHECK(y == w);
      weft::sort(rt, z, std::ranges::greater());
      CHECK(std::ranges::equal(z.rbegin(), z.rend(), w.begin(), w.end()));
      if (n != 0) {
        const std::size_t at = r.below(n);
        weft::nth_element(rt, v, v.begin() + std::ptrdiff_t(at));
        CHECK(v[at] == w[at]);
        CHECK(std::ranges::all_of(v.begin(), v.begin() + std::ptrdiff_t(at),
                                  [&](number e) { return e <= w[at]; }));
        std::ranges::sort(v);
        CHECK(v == w);
      }
    }
  });
}

TEST_CASE("equal elements stay in their order where they should, whatever they are") {
  on_all_sizes(25'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<pair> v = pairs(n, r);
    std::vector<pair> sorted = v, x = v, y = v;
    std::ranges::sort(sorted);  // by the places, too
    weft::stable_sort(rt, x, {}, &pair::first);
    CHECK(x == sorted);
    weft::sort(rt, y);  // by both
    CHECK(y == sorted);

    std::vector<large> l = large_ones(v), m = l;
    weft::stable_sort(rt, l, {}, [](const large& e) { return e.of.first; });
    CHECK(l == large_ones(sorted));
    weft::sort(rt, m, {}, &large::of);
    CHECK(m == l);

    std::vector<only_moved> o = only_moved_ones(v), q = only_moved_ones(v);
    weft::stable_sort(rt, o, {}, key_of);
    weft::sort(rt, q, {}, &only_moved::get);
    CHECK(std::ranges::equal(o, only_moved_ones(sorted), {}, &only_moved::get, &only_moved::get));
    CHECK(std::ranges::equal(o, q, {}, &only_moved::get, &only_moved::get));

    std::deque<pair> d(v.begin(), v.end());  // not in one piece of memory
    weft::stable_sort(rt, d, {}, &pair::first);
    CHECK(std::ranges::equal(d, sorted));
    weft::nth_element(rt, o, o.begin() + std::ptrdiff_t(n / 2), std::ranges::greater(), &only_moved::get);
    if (n != 0) CHECK(o[n / 2].get() == q[n - 1 - n / 2].get());
  });
}

TEST_CASE("sorted ranges are merged, and equal ones of the first come first") {
  on_all_sizes(40'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    std::vector<pair> a = pairs(n, r), b = pairs(r.below(n + 1), r);
    if (r.one_in(2)) std::swap(a, b);
    for (pair& p : b) p.second += 1'000'000;
    std::ranges::sort(a);
    std::ranges::sort(b);
    std::vector<pair> merged(a.size() + b.size()), expected(merged.size());
    CHECK(weft::merge(rt, a, b, merged.begin(), {}, &pair::first, &pair::first) == merged.end());
    std::ranges::merge(a, b, expected.begin(), {}, &pair::first, &pair::first);
    CHECK(merged == expected);
    const std::vector<large> la = large_ones(a), lb = large_ones(b);
    std::vector<large> lm(merged.size());
    const auto key = [](const large& e) { return e.of.first; };
    weft::merge(rt, la, lb, lm.begin(), {}, key, key);
    CHECK(lm == large_ones(expected));
  });
}

TEST_CASE("elements of one kind come before those of another") {
  on_all_sizes(40'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<pair> v = pairs(n, r);
    const number limit = 1 + r.below(n + 1);
    const auto is = [limit](std::uint32_t key) { return key < limit / 2; };
    std::vector<pair> x = v, y = v, expected = v;
    std::atomic<std::size_t> asked{0};
    std::ranges::sort(expected, {}, [&](const pair& e) { return std::pair(!is(e.first), e.second); });
    const auto middle = std::ranges::count_if(expected, is, &pair::first);
    const auto count = [&](std::uint32_t key) {
      ++asked;
      return is(key);
    };
    CHECK(weft::stable_partition(rt, x, count, &pair::first) - x.begin() == middle);
    CHECK(x == expected);
    CHECK(asked == n);
    CHECK(weft::partition(rt, y, is, &pair::first) - y.begin() == middle);
    CHECK(std::ranges::is_partitioned(y, is, &pair::first));
    std::ranges::sort(y, {}, &pair::second);
    CHECK(y == v);
    std::vector<only_moved> o = only_moved_ones(v);
    weft::stable_partition(rt, o, [&](const only_moved& e) { return is(std::uint32_t(key_of(e))); });
    CHECK(std::ranges::equal(o, only_moved_ones(expected), {}, &only_moved::get, &only_moved::get));
    std::vector<only_moved> q = only_moved_ones(v);
    const auto is_key = [&](number key) { return is(std::uint32_t(key)); };
    CHECK(weft::partition(rt, q, is_key, key_of) - q.begin() == middle);
    CHECK(std::ranges::is_partitioned(q, is_key, key_of));
    std::ranges::sort(q, {}, [](const only_moved& e) { return std::uint32_t(e.get()); });
    CHECK(std::ranges::equal(q, only_moved_ones(v), {}, &only_moved::get, &only_moved::get));
  });
}

TEST_CASE("a comparison that throws ends the algorithm, and nothing leaks") {
  const auto none = tracked::alive.load();
  on_all_sizes(20'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    if (n < 2) return;
    std::atomic<std::size_t> left{0};
    const auto compare = [&](const tracked& a, const tracked& b) {
      if (left.fetch_sub(1) == 0) throw planted_failure();
      return a.value < b.value;
    };
    const auto fails = [&](const auto& algorithm) {
      std::vector<tracked> v;
      for (std::size_t i = 0; i < n; ++i) v.emplace_back(long(r.below(n)));
      left = r.below(n - 1);
      CHECK_THROWS_AS(algorithm(v), planted_failure);
    };
    fails([&](auto& v) { weft::sort(rt, v, compare); });
    fails([&](auto& v) { weft::stable_sort(rt, v, compare); });
    fails([&](auto& v) {
      weft::partition(rt, v, [&](const tracked& e) { return compare(e, tracked(long(n / 2))); });
    });
    fails([&](auto& v) { weft::max_element(rt, v, compare); });
    fails([&](auto& v) { weft::min_element(rt, v, compare); });
    // Nobody knows which element is at a place before each other one has been compared.
    fails([&](auto& v) { weft::nth_element(rt, v, v.begin() + std::ptrdiff_t(r.below(n)), compare); });
    fails([&](auto& v) {
      std::vector<tracked> w, merged(2 * n);
      for (std::size_t i = 0; i < n; ++i) v[i].value = long(2 * i), w.emplace_back(long(2 * i + 1));
      weft::merge(rt, v, w, merged.begin(), compare);  // none comes before all of the other range
    });
  });
  CHECK(tracked::alive == none);
}

TEST_CASE("a predicate that throws loses no element") {
  on_all_sizes(5'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    if (n < 2) return;
    std::vector<std::string> before;
    for (std::size_t i = 0; i < n; ++i)
      before.push_back("an element that has memory of its own " + std::to_string(i));
    std::ranges::sort(before);
    for (const bool stable : {false, true}) {
      std::vector<std::string> v = before;
      std::atomic<std::size_t> left{r.below(n - 1)};
      const auto is = [&](const std::string& s) {
        if (left.fetch_sub(1) == 0) throw planted_failure();
        return s.back() % 2 == 0;
      };
      if (stable)
        CHECK_THROWS_AS(weft::stable_partition(rt, v, is), planted_failure);
      else
        CHECK_THROWS_AS(weft::partition(rt, v, is), planted_failure);
      std::ranges::sort(v);
      CHECK(v == before);
    }
  });
}

TEST_CASE("a stopped run ends a pipeline, also of one worker") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    std::atomic<int> items{0};
    CHECK_THROWS_AS(rt.run([&] {
      weft::pipeline(
          4,
          [&]() -> std::optional<int> {
            if (items == 1'000'000) return {};
            return ++items;
          },
          weft::serial_stage([](int i) {
            if (i == 3) weft::this_task::request_stop();
          }));
    }),
                    weft::cancelled);
    CHECK(items < 100);
  }
}

TEST_CASE("other workers sort, merge and carry items") {
  weft::runtime rt({.workers = 2});
  std::vector<number> v(20'000), w(40'000);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = (i * 7919) % v.size();
  const auto with = [](company& c) {
    return [&c](number a, number b) {
      if (a % 64 == 0) c.await();
      return a < b;
    };
  };
  company in_sort, in_stable_sort, in_merge, in_partition, in_nth, in_pipe;
  std::vector<number> x = v, y = v, z = v;
  weft::sort(rt, x, with(in_sort));
  CHECK(in_sort.met());
  weft::stable_sort(rt, y, with(in_stable_sort));
  CHECK(in_stable_sort.met());
  CHECK(x == y);
  weft::merge(rt, x, y, w.begin(), with(in_merge));
  CHECK(in_merge.met());
  CHECK(std::ranges::is_sorted(w));
  weft::nth_element(rt, z, z.begin() + 1000, with(in_nth));
  CHECK(z[1000] == 1000);
  weft::partition(rt, v, [&](number e) {
    in_partition.await();
    return e < 5000;
  });
  CHECK(in_partition.met());
  int next = 0;
  weft::pipeline(
      rt, 4, [&] { return next == 10 ? std::nullopt : std::optional(next++); },
      weft::parallel_stage([&](int) { in_pipe.await(); }));
  CHECK(in_pipe.met());
}

TEST_CASE("problems are divided, and their results combined in order") {
  weft::runtime rt({.workers = 3});
  using words = std::pair<int, int>;
  const auto halves = [](const words& w) {
    const int middle = w.first + (w.second - w.first) / 2;
    return std::array<words, 2>{words(w.first, middle), words(middle, w.second)};
  };
  std::string expected;
  for (int i = 0; i < 3000; ++i) expected += std::to_string(i) + " ";
  const auto is_one = [](const words& w) { return w.second - w.first == 1; };
  const auto write = [](const words& w) {
    if (w.first % 100 == 0) dawdle();
    if (w.first == -20 || w.first == -10) throw long(w.first);
    return std::to_string(w.first) + " ";
  };
  CHECK(weft::divide_and_conquer(rt, words(0, 3000), is_one, write, halves, std::plus<>()) == expected);
  CHECK(thrown_by([&] {
          weft::divide_and_conquer(rt, words(-100, 100), is_one, write, halves, std::plus<>());
        }) == -20);

  std::vector<int> order(1000);  // nothing is returned; what is divided is combined in place
  rt.run([&] {
    weft::divide_and_conquer(
        words(0, 1000), is_one, [&](const words& w) { order[std::size_t(w.first)] = -w.first; },
        [&](const words& w) {
          const auto h = halves(w);
          return std::vector<words>(h.begin(), h.end());
        },
        [&](const words& w) { std::sort(order.begin() + w.first, order.begin() + w.second); });
  });
  CHECK(std::ranges::is_sorted(order));
  CHECK(order.front() == -999);
}

TEST_CASE("items pass through a pipeline in order, and a few at a time") {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const std::size_t tokens : {1u, 2u, 5u, 16u}) {
      INFO("workers " << workers << ", tokens " << tokens);
      weft::runtime rt({.workers = workers});
      int next = 0;
      std::atomic<int> under_way{0}, most{0}, in_serial{0};
      std::string text, expected;
      weft::pipeline(
          rt, tokens,
          [&]() -> std::optional<int> {
            if (next == 300) return std::nullopt;
            const int now = ++under_way;
            for (int m = most; m < now && !most.compare_exchange_weak(m, now);) {
            }
            return next++;
          },
          weft::parallel_stage([](int i) {
            if (i % 7 == 0) dawdle();
            return std::make_unique<std::string>(std::to_string(i));
          }),
          weft::serial_stage([&](std::unique_ptr<std::string> s) {
            CHECK(++in_serial == 1);
            --in_serial;
            return std::move(*s) + ",";
          }),
          weft::parallel_stage([](std::string s) { return s + " "; }),  //
          weft::serial_stage([&](const std::string& s) {
            text += s;
            --under_way;
          }));
      for (int i = 0; i < 300; ++i) expected += std::to_string(i) + ", ";
      CHECK(text == expected);
      CHECK(most <= int(tokens));
      // The first exception is that of the serial program, and all items before pass.
      int done = 0, read = 0;
      const auto fail_at = [](int bad) {
        return [bad](int i) {
          if (i % 5 == 0) dawdle();
          if (i >= bad) throw long(i);
          return i;
        };
      };
      CHECK(thrown_by([&] {
              weft::pipeline(
                  rt, tokens, [&]() { return std::optional<int>(read++); }, weft::parallel_stage(fail_at(53)),
                  weft::serial_stage(fail_at(51)), weft::serial_stage([&](int) { ++done; }));
            }) == 51);
      CHECK(done == 51);
      CHECK(read < 51 + 20 + int(tokens));
      CHECK_THROWS_AS(weft::pipeline(
                          rt, 0, [] { return std::optional<int>(); }, weft::serial_stage([](int) {})),
                      weft::error);
    }
}

TEST_CASE("an item waits before a serial stage for those that are still behind it") {
  weft::runtime rt({.workers = 2});
  std::atomic<bool> third_begun{false};  // the second has been at the serial stage then
  bool first_waited = false;
  int next = 0;
  std::string order;
  weft::pipeline(
      rt, 3, [&] { return next == 3 ? std::nullopt : std::optional(next++); },
      weft::parallel_stage([&](int i) {
        if (i == 0) first_waited = wait_until([&] { return third_begun.load(); });
        if (i == 2) third_begun = true;
        return i;
      }),
      weft::serial_stage([&](int i) { order += std::to_string(i); }));
  CHECK(first_waited);
  CHECK(order == "012");
}

TEST_CASE("a stage waits for what it forks, and for nobody who carries items") {
  for (const bool algorithm : {true, false}) {
    weft::runtime rt({.workers = 2});
    std::atomic<bool> second_begun{false}, first_done{false};
    bool in_time = false;
    int next = 0, seen = 0;
    weft::pipeline(
        rt, 2, [&] { return next == 2 ? std::nullopt : std::optional(next++); },
        weft::parallel_stage([&](int i) {
          if (i == 0) {
            CHECK(wait_until([&] { return second_begun.load(); }));
            std::vector<int> v(10);
            if (algorithm) {
              weft::for_each(v, [](int& e) { e = 1; });
            } else {
              for (int& e : v) weft::fork([&e] { e = 1; });
              weft::sync();
            }
            seen = std::accumulate(v.begin(), v.end(), 0);
            first_done = true;
          } else {
            second_begun = true;
            in_time = wait_until([&] { return first_done.load(); });
          }
        }));
    CHECK(in_time);
    CHECK(seen == 10);
  }
}

TEST_CASE("what a stage has forked fails as the stage does") {
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    int next = 0, done = 0;
    CHECK(thrown_by([&] {
            weft::pipeline(
                rt, 4, [&] { return next == 100 ? std::nullopt : std::optional(next++); },
                weft::parallel_stage([](int i) {
                  weft::fork([i] {
                    if (i >= 41) throw long(i);
                  });
                  weft::sync();
                  return i;
                }),
                weft::serial_stage([&](int) { ++done; }));
          }) == 41);
    CHECK(done == 41);
  }
}

TEST_CASE("a stage gets an rvalue, also of what the one before has returned by reference") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    const std::string text = "a text that is longer than any short one";
    int next = 0;
    std::vector<std::string> seen;
    weft::pipeline(
        rt, 4, [&] { return next == 20 ? std::nullopt : std::optional(next++); },
        weft::parallel_stage([&](int) -> const std::string& { return text; }),
        weft::serial_stage([&](std::string&& s) { seen.push_back(std::move(s)); }));
    CHECK(seen == std::vector<std::string>(20, text));
  }
}

TEST_CASE("algorithms wait for the children of their caller, whatever the number of workers") {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false})
      for (const std::size_t n : {0u, 3u, 100'000u}) {
        weft::runtime rt({.workers = workers, .inlining = inlining});
        std::vector<int> v(n, 1), w(n);
        const auto fails = [&](auto algorithm) {
          bool thrown_here = false;
          rt.run([&] {
            weft::fork([] { throw 7; });
            try {
              algorithm();
            } catch (int e) {
              thrown_here = e == 7;
            }
          });
          CHECK(thrown_here);
        };
        fails([&] { weft::for_each(v, [](int& e) { e = 2; }); });
        fails([&] { weft::sort(v); });
        fails([&] { weft::partition(v, [](int e) { return e > 1; }); });
        fails([&] { weft::inclusive_scan(v, w.begin()); });
        fails([&] { weft::transform_reduce(v, 0, std::plus<>(), std::identity()); });
        fails([&] { weft::find(v, 5); });
        fails(
            [&] { weft::pipeline(2, [] { return std::optional<int>(); }, weft::serial_stage([](int) {})); });
        fails([&] {
          weft::divide_and_conquer(
              1, [](int) { return true; }, [](int i) { return i; }, [](int i) { return std::array{i, i}; },
              std::plus<>());
        });
      }
}

TEST_CASE("a problem that is divided into no parts is named") {
  weft::runtime rt({.workers = 2});
  CHECK_THROWS_AS(weft::divide_and_conquer(
                      rt, 3, [](int i) { return i == 0; }, [](int i) { return i; },
                      [](int) { return std::vector<int>(); }, std::plus<>()),
                  weft::error);
  CHECK_THROWS_AS(
      weft::divide_and_conquer(
          rt, 3, [](int i) { return i == 0; }, [](int) {}, [](int) { return std::vector<int>(); }),
      weft::error);
}
