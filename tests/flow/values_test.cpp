// SPDX-License-Identifier: BSL-1.0
// Arguments that are no objects: copied or moved into the task, and destroyed with it.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

/// Counts as tracked does, but moves without throwing, as most types do.
struct quiet {
  static inline std::atomic<int> alive{0}, copies{0}, moves{0};
  long value;
  static void reset() { alive = copies = moves = 0; }
  explicit quiet(long v) noexcept : value(v) { ++alive; }
  quiet(const quiet& q) noexcept : value(q.value) { ++alive, ++copies; }
  quiet(quiet&& q) noexcept : value(std::exchange(q.value, -1)) { ++alive, ++moves; }
  quiet& operator=(const quiet&) = delete;
  ~quiet() { --alive; }
};

struct alignas(64) wide {
  long value;
};

struct large {
  std::array<unsigned char, 20'000> bytes;
};

bool aligned(const wide& w) { return reinterpret_cast<std::uintptr_t>(&w) % alignof(wide) == 0; }

enum class colour { red, green };

std::atomic<long> sum{0};
void add_to_sum(int a, long b, double c) { sum += a + b + static_cast<long>(c); }

}  // namespace

TEST_CASE("values arrive by value, by reference to const and as rvalues") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> right{0};
    rt.run([&] {
      const std::string text = "a text that is too long for the place inside a string";
      weft::fork([&](std::string s) { right += s.size() == 53; }, text);
      weft::fork([&](const std::string& s) { right += s.size() == 53; }, text);
      weft::fork([&](std::string&& s) { right += std::string(std::move(s)).size() == 53; }, text);
      weft::fork([&](std::string_view s) { right += s.size() == 53; }, text);
      weft::fork([&](const std::string s) { right += s.size() == 53; }, std::string(text));
    });
    CHECK(right == 5);
  });
}

TEST_CASE("arguments are converted to the parameters' types") {
  on_each_runtime([](weft::runtime& rt) {
    sum = 0;
    std::atomic<int> right{0};
    rt.run([&] {
      weft::fork(add_to_sum, 'a', 2, 3.5f);
      weft::fork([&](const std::string& s, const char* p) { right += s == "text" && *p == 'x'; }, "text",
                 "xyz");
      weft::fork([&](std::nullptr_t n, colour c, const int* p) { right += n == p && c == colour::green; },
                 nullptr, colour::green, nullptr);
      const int array[] = {1, 2, 3};
      weft::fork([&](const int* p) { right += p[2] == 3; }, array);
      weft::sync();
    });
    CHECK(sum == 'a' + 2 + 3);
    CHECK(right == 3);
  });
}

TEST_CASE("an lvalue is copied once, an rvalue never") {
  on_each_runtime([](weft::runtime& rt) {
    quiet::reset();
    std::atomic<long> seen{0};
    int after_lvalue = 0;
    rt.run([&] {
      quiet q(5);
      weft::fork([&](const quiet& v) { seen += v.value; }, q);
      weft::fork([&](quiet v) { seen += v.value; }, q);
      weft::fork([&](quiet&& v) { seen += v.value; }, q);
      weft::fork([&](const quiet& a, const quiet& b) { seen += a.value + b.value; }, q, std::as_const(q));
      weft::sync();
      after_lvalue = quiet::copies;
      seen += 100 * q.value;  // it was not moved from
      weft::fork([&](const quiet& v) { seen += v.value; }, quiet(6));
      weft::fork([&](quiet v) { seen += v.value; }, std::move(q));
    });
    CHECK(after_lvalue == 5);
    CHECK(quiet::copies == 5);
    CHECK(seen == 5 * 5 + 500 + 6 + 5);
    CHECK(quiet::alive == 0);
  });
}

TEST_CASE("a value whose move may throw is copied once, too") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    std::atomic<long> seen{0};
    rt.run([&] {
      tracked t(5);
      weft::fork([&](const tracked& v) { seen += v.value; }, t);
      weft::fork([&](tracked v) { seen += v.value; }, std::move(t));
    });
    CHECK(tracked::copies == 1);
    CHECK(seen == 10);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("the task has the value that the argument had at the fork") {
  on_each_runtime([](weft::runtime& rt) {
    std::vector<int> seen(10);
    rt.run([&] {
      int i = 0;
      for (int& s : seen) {
        weft::fork([&s](int v) { s = v; }, i);
        i += 7;
      }
      i = -1;
    });
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<int>(7 * i));
  });
}

TEST_CASE("a value parameter is the task's own") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> wrong{0};
    rt.run([&] {
      const std::string text(100, 'x');
      for (int i = 0; i < 20; ++i)
        weft::fork(
            [&](std::string&& s) {
              wrong += s != std::string(100, 'x');
              s.assign(50, 'y');
            },
            text);
      weft::sync();
      wrong += text != std::string(100, 'x');
    });
    CHECK(wrong == 0);
  });
}

TEST_CASE("values that can only be moved") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> seen{0};
    rt.run([&] {
      auto three = std::make_unique<int>(3);
      weft::fork([&](std::unique_ptr<int> p) { seen += *p; }, std::make_unique<int>(1));
      weft::fork([&](const std::unique_ptr<int>& p) { seen += *p; }, std::make_unique<int>(2));
      weft::fork([&](std::unique_ptr<int>&& p) { seen += *std::unique_ptr<int>(std::move(p)); },
                 std::move(three));
      weft::fork([&](std::unique_ptr<int> p, std::vector<std::unique_ptr<int>> v) { seen += *p + *v.at(1); },
                 std::make_unique<int>(4),
                 [] {
                   std::vector<std::unique_ptr<int>> v(2);
                   v[1] = std::make_unique<int>(5);
                   return v;
                 }());
    });
    CHECK(seen == 15);
  });
}

TEST_CASE("std::ref reaches the caller's own object") {
  on_each_runtime([](weft::runtime& rt) {
    int x = 1;
    const std::string text = "constant";
    std::atomic<int> right{0};
    rt.run([&] {
      weft::fork([](int& v) { v += 1; }, std::ref(x));
      weft::sync();
      weft::fork([&](std::reference_wrapper<int> r) { right += &r.get() == &x; }, std::ref(x));
      weft::fork([&](const std::string& s) { right += &s == &text; }, std::cref(text));
      weft::sync();
      weft::fork([](int* p) { *p += 1; }, &x);
    });
    CHECK(x == 3);
    CHECK(right == 2);
  });
}

TEST_CASE("a value with more than the usual alignment keeps it") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> right{0};
    rt.run([&] {
      for (long i = 0; i < 20; ++i) {
        const wide w{i};
        weft::fork([&, i](const wide& v) { right += aligned(v) && v.value == i; }, w);
        weft::fork([&, i](char, wide v, char) { right += aligned(v) && v.value == i; }, 'a', w, 'b');
        weft::fork([&right, w, i] { right += aligned(w) && w.value == i; });
      }
    });
    CHECK(right == 60);
  });
}

TEST_CASE("large values, and many of them") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> right{0};
    rt.run([&] {
      large l{};
      for (int i = 0; i < 100; ++i) {
        l.bytes.fill(static_cast<unsigned char>(i));
        weft::fork([&right, i](const large& v) { right += v.bytes.front() == i && v.bytes.back() == i; }, l);
      }
    });
    CHECK(right == 100);
  });
}

TEST_CASE("what a task keeps is destroyed when it has run, before its siblings run") {
  weft::runtime rt(weft_test::alone_and_deferring());
  tracked::reset();
  std::vector<long> alive;
  rt.run([&] {
    for (int i = 0; i < 5; ++i)
      weft::fork([&, t = tracked(1)](const tracked&) { alive.push_back(tracked::alive); }, tracked(2));
  });
  CHECK(alive == std::vector<long>{10, 8, 6, 4, 2});
  CHECK(tracked::alive == 0);
}

TEST_CASE("many arguments, in any mixture") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> a(1L), b(2L), c;
    weft::shared<std::string> text("x");
    bool right = false;
    rt.run([&] {
      weft::fork(
          [](char p, weft::read<long> x, const std::string& q, weft::write<long> z, double r, const long& y,
             std::unique_ptr<int> s, std::string& t, short u) {
            z = *x + y;
            t += q + p + std::to_string(static_cast<int>(r) + *s + u);
          },
          'p', a, std::string("q"), c, 1.5, weft::read(b), std::make_unique<int>(10), weft::update(text),
          100);
      weft::fork(
          [&](weft::read<std::string> t, long k, weft::read<long> z) { right = *t == "xqp111" && *z == k; },
          text, 3L, c);
    });
    CHECK(right);
    CHECK(c.get() == 3);
  });
}
