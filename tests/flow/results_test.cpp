// SPDX-License-Identifier: BSL-1.0
// What a task returns becomes a shared object, whatever its type, and ends once.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

struct pair {
  int a;
  double b;
};
struct empty {};
enum class colour : unsigned char { red, green };

struct alignas(128) wide {
  long value;
};
struct alignas(64) wide_tracked {
  explicit wide_tracked(long v) : counted(v) {}
  tracked counted;
};
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};
struct immovable {
  explicit immovable(int v) : value(v) { ++alive; }
  immovable(const immovable&) = delete;
  immovable& operator=(const immovable&) = delete;
  ~immovable() { --alive; }
  static inline std::atomic<int> alive{0};
  int value;
};

bool aligned(const void* p, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

tracked make(long n) { return tracked(n); }

long fib(long n) { return weft_test::fib(n); }

}  // namespace

TEST_CASE("results of plain types") {
  on_each_runtime([](weft::runtime& rt) {
    int right = 0;
    rt.run([&] {
      auto i = weft::fork([] { return 42; });
      auto p = weft::fork([](int n) { return pair{n, 1.5}; }, 7);
      auto b = weft::fork([] { return true; });
      auto e = weft::fork([] { return empty{}; });
      auto c = weft::fork([] { return colour::green; });
      auto n = weft::fork([]() -> const int* { return nullptr; });
      static_assert(std::is_same_v<decltype(p), weft::shared<pair>>);
      static_assert(std::is_void_v<decltype(weft::fork([] {}))>);
      weft::sync();
      right = i.get() == 42 && p.get().a == 7 && p.get().b == 1.5 && b.get() && c.get() == colour::green &&
              n.get() == nullptr;
      static_cast<void>(e.get());
    });
    CHECK(right);
  });
}

TEST_CASE("results of types with constructors and destructors") {
  on_each_runtime([](weft::runtime& rt) {
    int right = 0;
    rt.run([&] {
      auto text = weft::fork([] { return std::string(100, 'x'); });
      auto list = weft::fork(
          [](std::vector<int> v) {
            v.push_back(3);
            return v;
          },
          std::vector<int>{1, 2});
      auto only_moved = weft::fork([] { return std::make_unique<int>(5); });
      auto bare = weft::fork([] { return no_default(6); });
      auto fixed = weft::fork([] { return immovable(7); });
      weft::sync();
      right = text.get() == std::string(100, 'x') && list.get() == std::vector<int>{1, 2, 3} &&
              *only_moved.get() == 5 && bare.get().value == 6 && fixed.get().value == 7;
    });
    CHECK(right);
    CHECK(immovable::alive == 0);
  });
}

TEST_CASE("a result of reference or const type is a value of its own") {
  on_each_runtime([](weft::runtime& rt) {
    std::string text = "before";
    bool right = false;
    rt.run([&] {
      auto r = weft::fork([&]() -> const std::string& { return text; });
      auto c = weft::fork([]() -> const std::string { return "const"; });
      static_assert(std::is_same_v<decltype(r), weft::shared<std::string>>);
      static_assert(std::is_same_v<decltype(c), weft::shared<std::string>>);
      weft::sync();
      text = "after";
      right = r.get() == "before" && c.get() == "const";
    });
    CHECK(right);
  });
}

TEST_CASE("results with more than the usual alignment") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    int wrong = 0;
    rt.run([&] {
      for (long i = 0; i < 20; ++i) {
        auto odd = weft::fork([] { return 'x'; });
        auto w = weft::fork([i] { return wide{i}; });
        auto t = weft::fork([i] { return wide_tracked(i); });
        weft::sync();
        wrong += !aligned(&w.get(), 128) || w.get().value != i;
        wrong += !aligned(&t.get(), 64) || t.get().counted.value != i;
        wrong += odd.get() != 'x';
      }
    });
    CHECK(wrong == 0);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("results flow into other tasks without sync") {
  on_each_runtime([](weft::runtime& rt) {
    long seen = 0;
    weft::shared<std::string> text;
    rt.run([&] {
      auto a = weft::fork(fib, 12L);
      auto b = weft::fork([](const long& v) { return v + 1; }, weft::read(a));
      auto c = weft::fork([](weft::read<long> x, weft::read<long> y) { return *x * *y; }, a, b);
      weft::fork([](long& v) { v *= 2; }, weft::update(c));
      weft::fork([](weft::update<long> v) { *v += 1; }, c);
      weft::fork([&](const long& v) { seen = v; }, weft::read(c));
      weft::fork([](const long& v, std::string& t) { t = std::to_string(v); }, weft::read(b),
                 weft::write(text));
    });
    CHECK(seen == 144 * 145 * 2 + 1);
    CHECK(text.get() == "145");
  });
}

TEST_CASE("a number of results known only at run time") {
  on_each_runtime([](weft::runtime& rt) {
    long sum = 0;
    rt.run([&] {
      std::vector<std::unique_ptr<weft::shared<long>>> parts;
      for (long i = 0; i < 50; ++i)
        parts.emplace_back(new weft::shared<long>(weft::fork([i] { return fib(i % 10); })));
      weft::sync();
      for (const auto& p : parts) sum += p->get();
    });
    CHECK(sum == 5 * 88);
  });
}

TEST_CASE("results are destroyed once, used or not") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    std::atomic<long> sum{0};
    long after_sync = -1;
    rt.run([&] {
      for (long i = 0; i < 50; ++i) weft::fork(make, i);  // nobody wants it
      {
        auto unread = weft::fork(make, 1L);
        auto read = weft::fork(make, 2L);
        weft::fork([&](const tracked& t) { sum += t.value; }, weft::read(read));
      }  // both handles end before the tasks may have run
      weft::sync();
      {
        auto last = weft::fork(make, 3L);
        weft::sync();
        sum += last.get().value;
      }
      after_sync = tracked::alive;
    });
    CHECK(sum == 5);
    CHECK(after_sync >= 0);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("the results of dropped and failed tasks are not destroyed, since there is none") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    CHECK_THROWS_AS(rt.run([] {
      auto a = weft::fork(make, 1L);
      auto b = weft::fork([]() -> tracked { throw 5; });
      auto c = weft::fork(make, 2L);
      auto d = weft::fork([](const tracked& t) { return tracked(t.value); }, weft::read(c));
    }),
                    int);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("the result of a failed or dropped task may be written once the failure is dealt with") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    std::string text;
    long number = 0, value = 0, read = 0;
    rt.run([&] {
      auto failed = weft::fork([]() -> std::string { throw 1; });
      auto dropped = weft::fork([] { return 5L; });
      auto counted = weft::fork(make, 6L);
      try {
        weft::sync();
      } catch (int) {
      }
      weft::fork([](std::string& s) { s = "written"; }, weft::write(failed));
      weft::fork([](weft::write<long> n) { n = 7; }, dropped);
      weft::fork([](tracked& t) { t.value += 8; }, weft::update(counted));
      weft::fork([&](const long& n) { read = n; }, weft::read(dropped));
      weft::sync();
      text = failed.get();
      number = dropped.get();
      value = counted.get().value;
    });
    CHECK(text == "written");
    CHECK(number == 7);
    CHECK((value == 8 || value == 14));  // a thief may have begun `counted` before the failure was known
    CHECK(read == 7);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("a right to change a result may be given while a thief produces it") {
  weft::runtime rt({.workers = 3, .inlining = false});
  tracked::reset();
  for (long i = 0; i < 300; ++i) {
    const long value = rt.run([i] {
      auto r = weft::fork(make, i);
      for (long k = 0; k < i * 20; ++k) asm volatile("" : : "r"(k));  // keeps the loop
      weft::fork([](tracked& t) { t.value += 8; }, weft::update(r));
      weft::sync();
      return r.get().value;
    });
    CHECK(value == i + 8);
  }
  CHECK(tracked::alive == 0);
}

TEST_CASE("a stolen task's result arrives") {
  weft::runtime rt(weft_test::two_and_deferring());
  int right = 0;
  constexpr int rounds = 50;
  for (int i = 0; i < rounds; ++i)
    rt.run([&] {
      std::atomic<bool> started{false};
      auto r = weft::fork([&] {
        started = true;
        return std::string(100, 'y');
      });
      const bool stolen = weft_test::wait_until([&] { return started.load(); });
      weft::sync();
      right += stolen && r.get() == std::string(100, 'y');
    });
  CHECK(right == rounds);
  CHECK(rt.counters().steals >= rounds);
}
