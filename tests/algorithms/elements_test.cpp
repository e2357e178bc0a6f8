// SPDX-License-Identifier: BSL-1.0
// What is done with each element, found among them, or made of all.
#include "algorithms/against_std.hpp"
#include "support/child.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <functional>
#include <numeric>
#include <ranges>

using namespace weft_test;

TEST_CASE("each element is processed once") {
  on_all_sizes(40'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, 1000);
    std::vector<number> w = v, x(n), y(n), expected(n);
    weft::for_each(rt, w, [](number& e) {
      if (e == 5) dawdle();
      e += 3;
    });
    std::ranges::transform(v, expected.begin(), [](number e) { return e + 3; });
    CHECK(w == expected);

    CHECK(weft::transform(
              rt, v, x.begin(), [](number e) { return e * e; }, [](number e) { return e + 1; }) == x.end());
    std::ranges::transform(v, expected.begin(), [](number e) { return (e + 1) * (e + 1); });
    CHECK(x == expected);

    rt.run([&] { weft::transform(v, w, y.begin(), std::minus<>()); });
    CHECK(y == std::vector<number>(n, number(-3)));
    weft::transform(rt, y, y.begin(), std::negate<>());  // in place
    CHECK(y == std::vector<number>(n, 3));

    weft::fill(rt, w, 8u);
    CHECK(w == std::vector<number>(n, 8));
  });
}

TEST_CASE("ranges need no more than random access") {
  weft::runtime rt({.workers = 2});
  std::deque<int> d(5000, 1);
  weft::for_each(rt, d, [](int& e) { ++e; });
  CHECK(std::ranges::count(d, 2) == 5000);
  CHECK(weft::transform_reduce(rt, std::views::iota(0, 5000), 0, std::plus<>(), [](int i) { return i; }) ==
        5000 * 4999 / 2);
  int a[] = {3, 1, 2};
  CHECK(*weft::max_element(rt, a) == 3);
  std::vector<only_moved> movable;
  for (number i = 0; i < 3000; ++i) movable.emplace_back(i);
  weft::for_each(rt, movable, [](only_moved& e) { *e.value += 1; });
  CHECK(weft::reduce_range(rt, movable, number(0), std::plus<>(), &only_moved::get) == 3000 * 3001 / 2);
  CHECK(weft::min_element(rt, movable, {}, &only_moved::get)->get() == 1);
}

namespace {

/// A key and something else, so that a projection left out does not compile or gives another result.
struct item {
  number other = 0, key = 0;
  friend bool operator==(const item&, const item&) = default;
};

}  // namespace

TEST_CASE("projections are applied by all that take them") {
  on_all_sizes(20'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> keys = numbers(n, r, n / 3 + 2), others = numbers(n, r, n / 3 + 2);
    std::vector<item> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = {others[i], keys[i]};
    const number x = r.below(n / 2 + 2);
    const auto is = [x](number key) {
      if (key % 512 == 5) dawdle();
      return key == x;
    };

    std::vector<item> changed = v, expected = v;
    weft::for_each(rt, changed, [](number& key) { key = 2 * key + 1; }, &item::key);
    std::ranges::for_each(expected, [](number& key) { key = 2 * key + 1; }, &item::key);
    CHECK(changed == expected);

    std::vector<number> out(n), expected_out(n);
    CHECK(weft::transform(rt, v, changed, out.begin(), std::minus<>(), &item::other, &item::key) ==
          out.end());
    std::ranges::transform(v, changed, expected_out.begin(), std::minus<>(), &item::other, &item::key);
    CHECK(out == expected_out);

    CHECK(weft::find_if(rt, v, is, &item::key) == std::ranges::find_if(v, is, &item::key));
    CHECK(weft::any_of(rt, v, is, &item::key) == std::ranges::any_of(v, is, &item::key));
    CHECK(weft::none_of(rt, v, is, &item::key) == std::ranges::none_of(v, is, &item::key));
    const auto is_not = [&](number key) { return !is(key); };
    CHECK(weft::all_of(rt, v, is_not, &item::key) == std::ranges::all_of(v, is_not, &item::key));
    CHECK(weft::max_element(rt, v, {}, &item::key) == std::ranges::max_element(v, {}, &item::key));
    CHECK(weft::max_element(rt, v, std::ranges::greater(), &item::key) ==
          std::ranges::max_element(v, std::ranges::greater(), &item::key));

    const auto odd = [](number key) { return key % 2 == 1; };
    std::vector<item> copied(n);
    copied.erase(weft::copy_if(rt, v, copied.begin(), odd, &item::key), copied.end());
    expected.resize(n);
    expected.erase(std::ranges::copy_if(v, expected.begin(), odd, &item::key).out, expected.end());
    CHECK(copied == expected);
  });
}

TEST_CASE("elements that can only be moved are looked at where they are") {
  on_all_sizes(10'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, n / 3 + 2);
    std::vector<only_moved> o;
    for (const number e : v) o.emplace_back(e);
    const number x = r.below(n / 2 + 2);
    const auto is = [x](const only_moved& e) {
      if (e.get() % 512 == 5) dawdle();
      return e.get() == x;
    };
    const auto is_not = [&](const only_moved& e) { return !is(e); };
    const auto first = std::ranges::find(v, x) - v.begin();
    const auto times = std::ranges::count(v, x);
    CHECK(weft::find_if(rt, o, is) - o.begin() == first);
    CHECK(weft::find(rt, o, x, &only_moved::get) - o.begin() == first);
    CHECK(weft::count_if(rt, o, is) == times);
    CHECK(weft::any_of(rt, o, is) == (times != 0));
    CHECK(weft::none_of(rt, o, is) == (times == 0));
    CHECK(weft::all_of(rt, o, is_not) == (times == 0));
    CHECK(weft::max_element(rt, o, {}, &only_moved::get) - o.begin() ==
          std::ranges::max_element(v) - v.begin());
    CHECK(std::ranges::equal(o, v, {}, &only_moved::get));
  });
}

TEST_CASE("the first element is found, and what is behind does not matter") {
  on_all_sizes(20'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, n / 3 + 1);
    const number x = r.below(n / 2 + 1);
    const auto is = [x](number e) {
      if (e % 512 == 5) dawdle();
      return e == x;
    };
    const auto twice = [](number e) { return 2 * e; };
    CHECK(weft::find(rt, v, x) == std::ranges::find(v, x));
    CHECK(weft::find(rt, v, 2 * x, twice) == std::ranges::find(v, 2 * x, twice));
    CHECK(weft::find_if(rt, v, is) == std::ranges::find_if(v, is));
    CHECK(weft::any_of(rt, v, is) == std::ranges::any_of(v, is));
    CHECK(weft::none_of(rt, v, is) == std::ranges::none_of(v, is));
    CHECK(weft::all_of(rt, v, [x](number e) { return e != x; }) == std::ranges::none_of(v, is));
    CHECK(weft::all_of(rt, v, [](number) { return true; }));
    CHECK(weft::count_if(rt, v, is) == std::ranges::count_if(v, is));
    CHECK(weft::count_if(rt, v, is, twice) == std::ranges::count_if(v, is, twice));
    CHECK(weft::min_element(rt, v) == std::ranges::min_element(v));
    CHECK(weft::max_element(rt, v) == std::ranges::max_element(v));  // also the first of several
    CHECK(weft::min_element(rt, v, std::ranges::greater(), twice) ==
          std::ranges::min_element(v, std::ranges::greater(), twice));
  });
}

TEST_CASE("a search ends early") {
  weft::runtime rt({.workers = 2});
  const std::vector<int> v(200'000);
  company both;
  std::atomic<std::size_t> asked{0};
  CHECK(weft::any_of(rt, v, [&](const int& e) {
    ++asked;
    both.await();  // a thief has half of the range
    if (&e != v.data()) dawdle();
    return &e == v.data();
  }));
  CHECK(both.met());
  CHECK(asked < v.size() / 4);
}

TEST_CASE("an exception ends pieces behind it") {
  weft::runtime rt({.workers = 2});
  const std::vector<int> v(200'000);
  company both;
  std::atomic<std::size_t> called{0};
  CHECK(thrown_by([&] {
          weft::for_each(rt, v, [&](const int& e) {
            ++called;
            both.await();
            if (&e == v.data()) throw 1L;
            dawdle();
          });
        }) == 1);
  CHECK(both.met());
  CHECK(called < v.size() / 4);
}

TEST_CASE("sums are values of the type of the first one, for any number of workers") {
  const std::vector<std::uint32_t> v(8000, 0x8000'0000u);
  for (const unsigned workers : {1u, 2u, 4u}) {
    weft::runtime rt({.workers = workers});
    CHECK(weft::reduce_range(rt, v, number(0)) == v.size() * number(0x8000'0000u));
    CHECK(weft::transform_reduce(rt, v, number(0), std::plus<>(), std::identity()) ==
          v.size() * number(0x8000'0000u));
  }
}

TEST_CASE("what a look at a part throws does not count") {
  weft::runtime rt({.workers = 2});
  const std::vector<number> ones(5000, 1);
  std::vector<number> sums(5000);
  std::atomic<int> combined{0};
  std::atomic<bool> looked{false}, gave_up{false};
  const auto add = [&](number a, number b) {
    if (a < 1000) {  // no running sum is: only a look at a part begins with less
      looked = true;
      throw 1L;
    }
    if (++combined < 100)
      dawdle();  // so that it is worth while to call others
    else if (!looked && !gave_up && !wait_until([&] { return looked.load(); }))
      gave_up = true;
    return a + b;
  };
  CHECK(thrown_by([&] { weft::inclusive_scan(rt, ones, sums.begin(), add, number(1000)); }) == -1);
  CHECK(looked);
  CHECK(sums.back() == 6000);
}

TEST_CASE("sums are those of the serial loop, also where operations do not commute") {
  on_all_sizes(30'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, 1000);
    affine sum{3, 4};
    for (const number e : v) sum = sum + affine_of(e);
    CHECK(weft::transform_reduce(rt, v, affine{3, 4}, std::plus<>(), affine_of) == sum);

    std::vector<affine> maps(n), scanned(n), expected(n);
    std::ranges::transform(v, maps.begin(), affine_of);
    CHECK(weft::reduce_range(rt, maps) == std::accumulate(maps.begin(), maps.end(), affine()));
    CHECK(weft::inclusive_scan(rt, maps, scanned.begin()) == scanned.end());
    std::inclusive_scan(maps.begin(), maps.end(), expected.begin());
    CHECK(scanned == expected);
    weft::inclusive_scan(rt, maps, scanned.begin(), std::plus<>(), affine{5, 6});
    std::inclusive_scan(maps.begin(), maps.end(), expected.begin(), std::plus<>(), affine{5, 6});
    CHECK(scanned == expected);
    rt.run([&] { weft::exclusive_scan(maps, scanned.begin(), affine{5, 6}); });
    std::exclusive_scan(maps.begin(), maps.end(), expected.begin(), affine{5, 6});
    CHECK(scanned == expected);
    weft::inclusive_scan(rt, maps, maps.begin());  // in place
    std::ranges::transform(v, scanned.begin(), affine_of);
    std::inclusive_scan(scanned.begin(), scanned.end(), expected.begin());
    CHECK(maps == expected);
  });
}

TEST_CASE("scans and sums of strings") {
  on_all_sizes(700, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    std::vector<std::string> words(n), scanned(n), expected(n);
    for (std::string& s : words) s = std::string(r.below(20), char('a' + r.below(26)));
    const auto concatenate = [](const std::string& a, const std::string& b) {
      if (b.size() == 7) dawdle();
      return a + b;
    };
    CHECK(weft::reduce_range(rt, words, std::string("begin"), concatenate) ==
          std::accumulate(words.begin(), words.end(), std::string("begin")));
    weft::inclusive_scan(rt, words, scanned.begin(), concatenate);
    std::inclusive_scan(words.begin(), words.end(), expected.begin());
    CHECK(scanned == expected);
    weft::exclusive_scan(rt, words, scanned.begin(), std::string("-"), concatenate);
    std::exclusive_scan(words.begin(), words.end(), expected.begin(), std::string("-"), std::plus<>());
    CHECK(scanned == expected);
  });
}

TEST_CASE("some elements are copied in their order") {
  on_all_sizes(30'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const number kinds = 1 + r.below(6);
    const std::vector<number> v = numbers(n, r, kinds);
    std::vector<number> copied(n), expected(n);
    std::atomic<std::size_t> asked{0};
    const auto end = weft::copy_if(rt, v, copied.begin(), [&](number e) {
      if (++asked % 512 == 0) dawdle();
      return e % 2 == 1;
    });
    CHECK(asked == n);
    const auto expected_end =
        std::copy_if(v.begin(), v.end(), expected.begin(), [](number e) { return e % 2 == 1; });
    CHECK(std::ranges::equal(copied.begin(), end, expected.begin(), expected_end));

    const auto half = [](number e) { return e / 2; };
    CHECK(weft::unique_copy(rt, v, copied.begin(), {}, half) - copied.begin() ==
          std::ranges::unique_copy(v, expected.begin(), {}, half).out - expected.begin());
    rt.run([&] { copied.erase(weft::unique_copy(v, copied.begin()), copied.end()); });
    expected.assign(v.begin(), v.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    CHECK(copied == expected);
  });
}

TEST_CASE("the first exception in the order of the range is thrown") {
  on_all_sizes(2000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    if (n == 0) return;
    std::vector<long> v(n), out(n);
    std::iota(v.begin(), v.end(), 0);
    std::vector<char> bad(n);
    for (int i = 0; i < 3; ++i) bad[r.below(n)] = 1;
    const long first = std::ranges::find(bad, 1) - bad.begin();
    const auto f = [&](long i) {
      if (i % 64 == 0) dawdle();
      if (bad[std::size_t(i)] != 0) throw i;
      return i;
    };
    CHECK(thrown_by([&] { weft::for_each(rt, v, f); }) == first);
    CHECK(thrown_by([&] { weft::transform(rt, v, out.begin(), f); }) == first);
    CHECK(thrown_by([&] { weft::transform_reduce(rt, v, 0L, std::plus<>(), f); }) == first);
    CHECK(thrown_by([&] { weft::count_if(rt, v, f); }) == first);
    CHECK(thrown_by([&] { weft::copy_if(rt, v, out.begin(), [&](long i) { return f(i) % 2 == 0; }); }) ==
          first);
    // A search that succeeds before does not fail.
    CHECK(thrown_by([&] { weft::find_if(rt, v, [&](long i) { return f(i) < 0; }); }) == first);
    if (first > 0) {
      const long wanted = long(r.below(number(first)));
      CHECK(weft::find_if(rt, v, [&](long i) { return f(i) == wanted; }) == v.begin() + wanted);
    }
    // A running sum fails where the serial one does, whatever the sums of parts are.
    const long limit = long(r.below(n)) + 1;
    const auto bounded = [limit](long a, long b) {
      if (b % 64 == 0) dawdle();
      if (a + b > limit) throw a + b;
      return a + b;
    };
    std::vector<long> ones(n, 1), sums(n);
    CHECK(thrown_by([&] { weft::inclusive_scan(rt, ones, sums.begin(), bounded, 1L); }) ==
          (limit + 1 <= long(n) + 1 ? limit + 1 : -1));
    CHECK(thrown_by([&] { weft::exclusive_scan(rt, ones, sums.begin(), 0L, bounded); }) ==
          (limit < long(n) ? limit + 1 : -1));
    // Neighbours are compared in their order, each pair once.
    const long first_pair = std::ranges::find(bad.begin() + 1, bad.end(), 1) - bad.begin();
    CHECK(thrown_by([&] {
            weft::unique_copy(rt, v, out.begin(), [&](long a, long b) { return f(std::max(a, b)) < 0; });
          }) == (first_pair < long(n) ? first_pair : -1));
  });
}

TEST_CASE("a search ends with the first element, though a thief has come to an end behind it before") {
  weft::runtime rt({.workers = 2});
  std::vector<long> v(5000);
  std::iota(v.begin(), v.end(), 0);
  // A thief begins with the second half, where each element ends the search. The first one waits for that.
  for (const bool first_throws : {false, true})
    for (const bool others_throw : {false, true}) {
      INFO("throws: " << first_throws << others_throw);
      std::atomic<bool> behind{false};
      bool waited = false;
      const auto is_end = [&](long i) {
        if (i == 0)
          waited = wait_until([&] { return behind.load(); });
        else if (i < 2000)
          return false;
        else
          behind = true;
        if (i == 0 ? first_throws : others_throw) throw i;
        return true;
      };
      long found = -1;
      const long thrown = thrown_by([&] { found = weft::find_if(rt, v, is_end) - v.begin(); });
      CHECK(waited);
      CHECK(thrown == (first_throws ? 0 : -1));
      CHECK(found == (first_throws ? -1 : 0));
    }
}

TEST_CASE("an operation that throws ends the algorithm, and nothing leaks") {
  const auto none = tracked::alive.load();
  on_all_sizes(10'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    if (n == 0) return;
    const std::vector<tracked> v(n, tracked(1));
    std::vector<tracked> out(n);
    std::atomic<std::size_t> left{0};
    const auto add = [&](const tracked& a, const tracked& b) {
      if (left.fetch_sub(1) == 0) throw planted_failure();
      return tracked(a.value + b.value);
    };
    const auto twice = [](const tracked& e) { return tracked(2 * e.value); };
    left = r.below(n);  // each element is added once
    CHECK_THROWS_AS(weft::reduce_range(rt, v, tracked(0), add), planted_failure);
    left = r.below(n);
    CHECK_THROWS_AS(weft::transform_reduce(rt, v, tracked(0), add, twice), planted_failure);
    left = n;
    CHECK(weft::transform_reduce(rt, v, tracked(5), add, twice).value == 2 * long(n) + 5);
    CHECK(left == 0);

    // One that throws by chance only where a part is looked at ahead fails nothing: here the sums decide.
    const long limit = long(r.below(n));
    const auto bounded = [limit](const tracked& a, const tracked& b) {
      if (a.value + b.value > limit) throw planted_failure();
      return tracked(a.value + b.value);
    };
    CHECK_THROWS_AS(weft::exclusive_scan(rt, v, out.begin(), tracked(0), bounded), planted_failure);
    CHECK_THROWS_AS(weft::inclusive_scan(rt, v, out.begin(), bounded, tracked(0)), planted_failure);
  });
  CHECK(tracked::alive == none);
}

TEST_CASE("other workers take part, also of few elements") {
  weft::runtime rt({.workers = 2});
  std::vector<number> few(3, 1), many(5000, 1), sums(5000);
  company in_loop, in_scan, in_copy;
  weft::for_each(rt, few, [&](number&) { in_loop.await(); });
  CHECK(in_loop.met());
  std::atomic<int> combined{0}, asked{0};
  weft::inclusive_scan(rt, many, sums.begin(), [&](number a, number b) {
    if (++combined < 100)
      dawdle();  // so that it is worth while to call others
    else
      in_scan.await();
    return a + b;
  });
  CHECK(in_scan.met());
  CHECK(sums.back() == 5000);
  weft::copy_if(rt, many, sums.begin(), [&](number) {
    if (++asked < 100)
      dawdle();
    else
      in_copy.await();
    return true;
  });
  CHECK(in_copy.met());
  CHECK(sums == many);
}

TEST_CASE("algorithms run inside tasks, beside others, and within one another") {
  weft::runtime rt({.workers = 3});
  std::vector<number> sums(40);
  rt.run([&] {
    weft::for_each(sums, [](number& s) {
      dawdle();
      const std::vector<number> v(500, 2);
      s = weft::reduce_range(v);
    });
  });
  CHECK(sums == std::vector<number>(40, 1000));
}

TEST_CASE("a stopped run ends an algorithm") {
  weft::runtime rt({.workers = 2});
  std::vector<int> v(100'000);
  std::atomic<int> calls{0};
  CHECK_THROWS_AS(rt.run([&] {
    weft::for_each(v, [&](int&) {
      dawdle();
      if (++calls == 3) weft::this_task::request_stop();
    });
  }),
                  weft::cancelled);
  CHECK(calls < 50'000);
}

TEST_CASE("outside tasks an algorithm needs a runtime") {
  if (thread_sanitized) return;
  const auto child = run_in_child([] {
    std::vector<int> v(10);
    weft::fill(v, 1);
  });
  CHECK(child.aborted());
  CHECK_THAT(child.output, contains("weft: an algorithm was called outside a task; pass the runtime"));
}

namespace {

/// x to a x + b, which are called with each other.
struct composed : affine {
  composed operator()(const composed& g) const {
    const affine& f = *this;
    return {f + g};
  }
};

struct order {
  std::string name;
  number price = 0;
};

}  // namespace

TEST_CASE("scans see elements as projected") {
  on_all_sizes(30'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, 1000);
    std::vector<affine> maps(n), scanned(n), expected(n);
    std::ranges::transform(v, maps.begin(), affine_of);

    std::inclusive_scan(maps.begin(), maps.end(), expected.begin());
    CHECK(weft::inclusive_scan(rt, v, scanned.begin(), {}, affine_of) == scanned.end());
    CHECK(scanned == expected);
    std::ranges::fill(scanned, affine());
    rt.run([&] { weft::inclusive_scan(v, scanned.begin(), std::plus<>(), affine_of); });
    CHECK(scanned == expected);

    std::inclusive_scan(maps.begin(), maps.end(), expected.begin(), std::plus<>(), affine{5, 6});
    weft::inclusive_scan(rt, v, scanned.begin(), std::plus<>(), affine{5, 6}, affine_of);
    CHECK(scanned == expected);
    std::ranges::fill(scanned, affine());
    rt.run([&] { weft::inclusive_scan(v, scanned.begin(), {}, affine{5, 6}, affine_of); });
    CHECK(scanned == expected);

    std::exclusive_scan(maps.begin(), maps.end(), expected.begin(), affine{5, 6});
    CHECK(weft::exclusive_scan(rt, v, scanned.begin(), affine{5, 6}, {}, affine_of) == scanned.end());
    CHECK(scanned == expected);
    std::ranges::fill(scanned, affine());
    rt.run([&] { weft::exclusive_scan(v, scanned.begin(), affine{5, 6}, std::plus<>(), affine_of); });
    CHECK(scanned == expected);

    // In place.
    const auto twice = [](number e) { return 2 * e; };
    std::vector<number> w = v, x = v, sums(n);
    std::ranges::transform(v, sums.begin(), twice);
    std::inclusive_scan(sums.begin(), sums.end(), sums.begin());
    weft::inclusive_scan(rt, w, w.begin(), {}, twice);
    CHECK(w == sums);
    weft::exclusive_scan(rt, x, x.begin(), number(0), {}, twice);
    std::exclusive_scan(v.begin(), v.end(), sums.begin(), number(0),
                        [&](number a, number b) { return a + twice(b); });
    CHECK(x == sums);
  });
}

TEST_CASE("scans of members, and of what cannot be copied") {
  weft::runtime rt({.workers = 2});
  const std::vector<order> orders(3000, order{"tea", 2});
  std::vector<number> sums(3000);
  weft::inclusive_scan(rt, orders, sums.begin(), {}, &order::price);
  CHECK(sums.back() == 6000);
  weft::exclusive_scan(rt, orders, sums.begin(), number(10), {}, &order::price);
  CHECK((sums.front() == 10 && sums.back() == 6008));
  std::vector<only_moved> movable;
  for (number i = 1; i <= 3000; ++i) movable.emplace_back(i);
  weft::inclusive_scan(rt, movable, sums.begin(), {}, &only_moved::get);
  CHECK(sums.back() == 3000 * 3001 / 2);
  weft::inclusive_scan(rt, std::views::iota(number(0), number(3000)), sums.begin(), std::plus<>(), number(1),
                       [](number i) { return 2 * i; });
  CHECK(sums.back() == 3000 * 2999 + 1);
}

TEST_CASE("an initial value of a scan may be called with elements, if it is one of their type") {
  weft::runtime rt({.workers = 2});
  const std::vector<composed> maps(3000, composed{{3, 1}});
  std::vector<composed> scanned(3000), expected(3000);
  const auto compose = [](const composed& f, const composed& g) { return f(g); };
  std::inclusive_scan(maps.begin(), maps.end(), expected.begin(), compose, composed{{5, 7}});
  weft::inclusive_scan(rt, maps, scanned.begin(), compose, composed{{5, 7}});
  CHECK(scanned == expected);
  weft::inclusive_scan(rt, maps, scanned.begin(), compose, composed{{5, 7}}, {});
  CHECK(scanned == expected);
}

TEST_CASE("a scan throws what its projection throws first in the order of the range") {
  on_all_sizes(2000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    if (n == 0) return;
    std::vector<long> v(n), sums(n);
    std::iota(v.begin(), v.end(), 0);
    const long first = long(r.below(n)), second = first + long(r.below(n - std::size_t(first)));
    const auto fails = [&](long i) {
      if (i % 64 == 0) dawdle();
      if (i == first || i == second) throw i;
      return 1L;
    };
    CHECK(thrown_by([&] { weft::inclusive_scan(rt, v, sums.begin(), {}, fails); }) == first);
    CHECK(thrown_by([&] { weft::inclusive_scan(rt, v, sums.begin(), {}, 1L, fails); }) == first);
    CHECK(thrown_by([&] { weft::exclusive_scan(rt, v, sums.begin(), 1L, {}, fails); }) == first);
  });
}

TEST_CASE("braces may stand for a projection of transform, also with a runtime") {
  on_all_sizes(20'000, [](weft::runtime& rt, std::size_t n, weft_test::random& r) {
    const std::vector<number> v = numbers(n, r, 1000), w = numbers(n, r, 1000);
    std::vector<number> x(n), y(n), expected(n);
    const auto twice = [](number e) { return 2 * e; };
    std::ranges::transform(v, w, expected.begin(), std::minus<>(), {}, twice);
    CHECK(weft::transform(rt, v, w, x.begin(), std::minus<>(), {}, twice) == x.end());
    CHECK(x == expected);
    rt.run([&] { weft::transform(v, w, y.begin(), std::minus<>(), {}, twice); });
    CHECK(y == expected);
    std::ranges::transform(v, w, expected.begin(), std::minus<>(), twice);
    weft::transform(rt, v, w, x.begin(), std::minus<>(), twice, {});
    CHECK(x == expected);
    weft::transform(rt, v, w, x.begin(), std::minus<>(), twice);
    CHECK(x == expected);
    weft::transform(rt, v, x.begin(), std::negate<>(), {});
    std::ranges::transform(v, expected.begin(), std::negate<>());
    CHECK(x == expected);
  });
}
