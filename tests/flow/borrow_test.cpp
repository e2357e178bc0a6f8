// SPDX-License-Identifier: BSL-1.0
// The program's own memory as an object of tasks.
#include "flow/runtimes.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using weft_test::on_each_runtime;

namespace {

struct base {
  int value = 0;
};
struct derived : base {
  int more = 0;
};

}  // namespace

TEST_CASE("tasks on one borrowed variable run in their order") {
  on_each_runtime([](weft::runtime& rt) {
    std::string text;
    rt.run([&] {
      auto t = weft::borrow(text);
      for (char c = 'a'; c <= 'z'; ++c) weft::fork([c](std::string& s) { s += c; }, weft::update(t));
    });
    CHECK(text == "abcdefghijklmnopqrstuvwxyz");
  });
}

TEST_CASE("two borrows of one address are one object") {
  on_each_runtime([](weft::runtime& rt) {
    int x = 1;
    int* const alias = &x;
    rt.run([&] {
      for (int i = 0; i < 20; ++i) {
        weft::fork([](int& v) { v = 2 * v % 1009; }, weft::update(weft::borrow(x)));
        weft::fork([](int& v) { v += 3; }, weft::update(weft::borrow(*alias)));
      }
    });
    int expected = 1;
    for (int i = 0; i < 20; ++i) expected = 2 * expected % 1009 + 3;
    CHECK(x == expected);
  });
}

TEST_CASE("parts of a program's own data are objects of their own") {
  on_each_runtime([](weft::runtime& rt) {
    std::vector<long> v(64, 1);
    long sum = 0;
    rt.run([&] {
      for (std::size_t step = 1; step < v.size(); step *= 2)
        for (std::size_t i = 0; i + step < v.size(); i += 2 * step)
          weft::fork([](long& a, const long& b) { a += b; }, weft::update(weft::borrow(v[i])),
                     weft::read(weft::borrow(v[i + step])));
      weft::fork([](const long& a, long& s) { s = a; }, weft::read(weft::borrow(v[0])),
                 weft::write(weft::borrow(sum)));
    });
    CHECK(sum == 64);
  });
}

TEST_CASE("a borrow of const memory can be read") {
  on_each_runtime([](weft::runtime& rt) {
    const std::string text = "constant";
    std::atomic<int> right{0};
    rt.run([&] {
      weft::fork([&](const std::string& s) { right += &s == &text; }, weft::read(weft::borrow(text)));
      weft::fork([&](const auto& s) { right += &s == &text; }, weft::read(weft::borrow(text)));
    });
    CHECK(right == 2);
  });
}

TEST_CASE("a borrowed object keeps its identity and may have no copy") {
  on_each_runtime([](weft::runtime& rt) {
    std::unique_ptr<int> owner = std::make_unique<int>(1);
    derived d;
    std::atomic<int> right{0};
    rt.run([&] {
      weft::fork(
          [&](std::unique_ptr<int>& p) {
            right += &p == &owner;
            p = std::make_unique<int>(2);
          },
          weft::update(weft::borrow(owner)));
      weft::fork([](const std::unique_ptr<int>& p, derived& x) { x.more = *p; },
                 weft::read(weft::borrow(owner)), weft::update(weft::borrow(d)));
      weft::fork([](base& b) { b.value = 5; }, weft::update(weft::borrow(d)));  // a base of the object
    });
    CHECK(right == 1);
    CHECK(d.more == 2);
    CHECK(d.value == 5);
  });
}

TEST_CASE("a parent's variable is borrowed until sync") {
  on_each_runtime([](weft::runtime& rt) {
    int total = 0;
    rt.run([&] {
      int local = 0;
      for (int round = 0; round < 10; ++round) {
        auto l = weft::borrow(local);
        for (int i = 0; i < 4; ++i) weft::fork([](weft::update<int> v) { *v += 1; }, l);
        weft::sync();
        local *= 2;
      }
      total = local;
    });
    int expected = 0;
    for (int round = 0; round < 10; ++round) expected = (expected + 4) * 2;
    CHECK(total == expected);
  });
}
