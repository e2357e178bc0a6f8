// SPDX-License-Identifier: BSL-1.0
// Rights: named at the call or declared as parameters, delegated, narrowed; and the order they give.
#include "flow/runtimes.hpp"
#include "support/random.hpp"

#include <array>
#include <atomic>
#include <string>
#include <type_traits>
#include <vector>

using weft_test::on_each_runtime;

namespace {

void set(long v, weft::write<long> out) { out = v; }
void increment(weft::update<long> v) { *v += 1; }
void copy(weft::read<long> from, weft::write<long> to) { to = *from; }

// Each hands its right on, as the table in the manual allows.
void write_on(long v, weft::write<long> out) { weft::fork(set, v, out); }
void read_on(weft::read<long> from, weft::write<long> to) { weft::fork(copy, from, to); }
void update_on(weft::update<long> v) { weft::fork(increment, v); }
void update_as_write(long n, weft::update<long> v) { weft::fork(set, n, v); }
void update_as_read(weft::update<long> v, weft::write<long> to) { weft::fork(copy, v, to); }

}  // namespace

TEST_CASE("a parameter that is a right takes any object") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> a, b(0L);
    long mine = 5;
    rt.run([&] {
      weft::fork(set, 3L, a);
      weft::fork(increment, a);
      weft::fork(copy, a, b);
      weft::fork(increment, weft::borrow(mine));
      weft::fork(copy, weft::borrow(mine), a);
    });
    CHECK(b.get() == 4);
    CHECK(mine == 6);
    CHECK(a.get() == 6);
  });
}

TEST_CASE("a right named at the call gives plain parameters") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::string> text("a");
    weft::shared<std::size_t> size;
    std::string copied;
    rt.run([&] {
      weft::fork([](std::string& s) { s += "b"; }, weft::update(text));
      weft::fork([](const std::string& s, std::size_t& n) { n = s.size(); }, weft::read(text),
                 weft::write(size));
      weft::fork([&](std::string s) { copied = s + "!"; }, weft::read(text));  // a value of its own
      weft::fork([](std::string& s) { s = "c"; }, weft::write(text));
    });
    CHECK(text.get() == "c");
    CHECK(size.get() == 2);
    CHECK(copied == "ab!");
  });
}

TEST_CASE("a right named at the call may meet a parameter that is the same right, or one it narrows to") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> a(1L), b;
    rt.run([&] {
      weft::fork(increment, weft::update(a));
      weft::fork(copy, weft::read(a), weft::write(b));
      weft::fork(copy, weft::update(b), weft::update(a));
      weft::fork(set, 7L, weft::update(b));
    });
    CHECK(a.get() == 2);
    CHECK(b.get() == 7);
  });
}

TEST_CASE("bodies get references of the right kind") {
  weft::runtime rt({.workers = 1});
  weft::shared<long> a(1L);
  int right = 0;
  rt.run([&] {
    weft::fork([&](auto&& v) { right += std::is_same_v<decltype(v), const long&>; }, weft::read(a));
    weft::fork([&](auto&& v) { right += std::is_same_v<decltype(v), long&>; }, weft::write(a));
    weft::fork([&](auto&& v) { right += std::is_same_v<decltype(v), long&>; }, weft::update(a));
    weft::fork([&](auto&& v) { right += std::is_same_v<decltype(v), int&&>; }, 1);
    weft::fork([&](weft::read<long> v) { right += std::is_same_v<decltype(*v), const long&>; }, a);
    weft::fork([&](weft::write<long> v) { right += std::is_same_v<decltype(*v), long&>; }, a);
    weft::fork([&](const weft::update<long>& v) { right += std::is_same_v<decltype(*v), long&>; }, a);
  });
  CHECK(right == 7);
}

TEST_CASE("a right's members reach the value") {
  weft::runtime rt({.workers = 1});
  weft::shared<std::string> a("abc"), b;
  int right = 0;
  rt.run([&] {
    weft::fork(
        [&](weft::read<std::string> r, weft::write<std::string> w) {
          right += r->size() == 3 && r.get() == "abc" && *r == "abc";
          w = "x";
          w->push_back('y');
          w.get() += 'z';
          *w += '!';
        },
        a, b);
    weft::fork(
        [&](weft::update<std::string> u) {
          right += *u == "xyz!" && u->size() == 4;
          u = "n" + *u;
          u.get() += "e";
        },
        b);
  });
  CHECK(right == 2);
  CHECK(b.get() == "nxyz!e");
}

TEST_CASE("rights are delegated to children") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> a, b, c(10L), d, e(0L);
    rt.run([&] {
      weft::fork(write_on, 3L, a);
      weft::fork(read_on, a, b);
      weft::fork(update_on, c);
      weft::fork(update_as_read, c, d);
      weft::fork(update_as_write, 9L, e);
    });
    CHECK(b.get() == 3);
    CHECK(c.get() == 11);
    CHECK(d.get() == 11);
    CHECK(e.get() == 9);
  });
}

TEST_CASE("rights are narrowed where they are delegated") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> v(1L), seen(0L);
    rt.run([&] {
      weft::fork(
          [](weft::update<long> u, weft::update<long> s) {
            weft::fork([](const long& x, long& sum) { sum += x; }, weft::read(u), weft::update(s));
            weft::fork([](const long& x, long& sum) { sum += x; }, weft::read(u), s);
            weft::fork([](long& x) { x = 5; }, weft::write(u));
            weft::fork([](const long& x, long& sum) { sum += 10 * x; }, weft::read(weft::update(u)), s);
            weft::fork([](long& x) { x += 1; }, u);
          },
          v, seen);
      weft::fork([](const long& x, long& sum) { sum += 1000 * x; }, weft::read(v), weft::update(seen));
    });
    CHECK(v.get() == 6);
    CHECK(seen.get() == 1 + 1 + 50 + 6000);
  });
}

TEST_CASE("what a child does with a handed right comes before what follows its parent") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::string> text("");
    rt.run([&] {
      for (char c : {'a', 'b', 'c'}) {
        weft::fork(
            [c](weft::update<std::string> t) {
              for (char d : {'1', '2'})
                weft::fork(
                    [c, d](weft::update<std::string> u) {
                      weft::fork([c, d](std::string& s) { (s += c) += d; }, u);
                    },
                    t);
            },
            text);
        weft::fork([](std::string& s) { s += '.'; }, weft::update(text));
      }
    });
    CHECK(text.get() == "a1a2.b1b2.c1c2.");
  });
}

TEST_CASE("readers run together, and one that changes the object after them alone") {
  weft::runtime rt({.workers = 4, .inlining = false});
  weft::shared<int> x(1);
  std::atomic<int> together{0}, wrong{0};
  bool met = true;
  rt.run([&] {
    for (int i = 0; i < 3; ++i)
      weft::fork(
          [&](const int& v) {
            ++together;
            if (!weft_test::wait_until([&] { return together >= 3; })) met = false;
            wrong += v != 1;
          },
          weft::read(x));
    weft::fork(
        [&](int& v) {
          wrong += together != 3;
          v = 2;
        },
        weft::update(x));
    weft::fork([&](const int& v) { wrong += v != 2; }, weft::read(x));
  });
  CHECK(met);
  CHECK(wrong == 0);
  CHECK(rt.counters().steals > 0);
}

TEST_CASE("one object in two parameters of a task") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> a(3L), r;
    rt.run([&] {
      weft::fork([](const long& x, const long& y, long& z) { z = x * y; }, weft::read(a), weft::read(a),
                 weft::write(r));
    });
    CHECK(r.get() == 9);
  });
}

TEST_CASE("random straight-line programs give what the loop gives") {
  weft_test::random dice(11);
  on_each_runtime([&](weft::runtime& rt) {
    constexpr std::size_t objects = 6;
    std::array<std::uint64_t, objects> expected{1, 2, 3, 4, 5, 6};
    std::array<std::uint64_t, objects> data = expected;
    const auto step = [](std::uint64_t& x, std::uint64_t y, std::uint64_t k) {
      x = (x ^ y) * 0x9E3779B97F4A7C15u + k;
    };
    rt.run([&] {
      for (std::uint64_t k = 0; k < 600; ++k) {
        const std::size_t i = dice.below(objects), j = (i + 1 + dice.below(objects - 1)) % objects;
        auto from = weft::borrow(data[j]), to = weft::borrow(data[i]);
        if (k % 5 == 0) {
          expected[i] = expected[j] + k;
          weft::fork([k](std::uint64_t y, std::uint64_t& x) { x = y + k; }, weft::read(from),
                     weft::write(to));
        } else {
          step(expected[i], expected[j], k);
          weft::fork(step, weft::update(to), weft::read(from), k);
        }
        if (dice.one_in(100)) weft::sync();
      }
    });
    CHECK(data == expected);
  });
}
