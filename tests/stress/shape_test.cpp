// SPDX-License-Identifier: BSL-1.0
// Extreme shapes: very deep chains of tail forks, very wide frames, very many objects.
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

long levels() { return 1'000'000 / static_cast<long>(weft_test::scale() * weft_test::scale()); }
int width() { return 100'000 / static_cast<int>(weft_test::scale()); }

void tail(long n, weft::update<long> v) {
  *v += 1;
  if (n > 1) weft::fork(tail, n - 1, v);
}

void bare_tail(long n, std::atomic<long>* count) {
  count->fetch_add(1, std::memory_order_relaxed);  // run orders it before the read
  if (n > 1) weft::fork(bare_tail, n - 1, count);
}

void tail_with_local(long n, weft::write<long> out) {
  if (n == 0) {
    out = 0;
    return;
  }
  weft::shared<long> below;
  weft::fork(tail_with_local, n - 1, below);
  weft::fork([](const long& b, long& o) { o = b + 1; }, weft::read(below), out);
}

template <class F>
void on_each_runtime(F&& f) {
  for (const unsigned workers : {1u, 2u, 4u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      weft::runtime rt({.workers = workers, .stack_size = 256 * 1024, .inlining = inlining});
      f(rt);
      CHECK(rt.counters().stack_high_water <= 256 * 1024);
    }
}

}  // namespace

TEST_CASE("a million levels of tail forks need a bounded stack") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> v(0L);
    rt.run(tail, levels(), v);
    CHECK(v.get() == levels());
    std::atomic<long> count{0};
    rt.run(bare_tail, levels(), &count);
    CHECK(count == levels());
  });
}

TEST_CASE("a deep chain of forks with local objects needs a bounded stack") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<long> v;
    rt.run(tail_with_local, levels() / 10, v);
    CHECK(v.get() == levels() / 10);
  });
}

TEST_CASE("a hundred thousand independent forks from one body") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> ran{0};
    rt.run([&] {
      for (int i = 0; i < width(); ++i)
        weft::fork([&] { ran.fetch_add(1, std::memory_order_relaxed); });  // as above
    });
    CHECK(ran == width());
  });
}

TEST_CASE("a hundred thousand forks on one object run in their order") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<std::uint64_t> v(std::uint64_t{1});
    std::uint64_t expected = 1;
    for (int i = 0; i < width(); ++i)
      expected = expected * 6364136223846793005u + static_cast<std::uint64_t>(i);
    rt.run([&] {
      for (int i = 0; i < width(); ++i)
        weft::fork([i](std::uint64_t& x) { x = x * 6364136223846793005u + static_cast<std::uint64_t>(i); },
                   weft::update(v));
    });
    CHECK(v.get() == expected);
  });
}

TEST_CASE("waves of readers and writers in one wide frame") {
  on_each_runtime([](weft::runtime& rt) {
    weft::shared<int> a(0), b(0), c(0);
    std::atomic<int> wrong{0};
    const int waves = width() / 8;
    rt.run([&] {
      for (int i = 1; i <= waves; ++i) {
        weft::fork([i](int& x) { x = i; }, weft::write(a));
        weft::fork([i](int& x) { x = -i; }, weft::write(b));
        for (int k = 0; k < 4; ++k)
          weft::fork([&, i](const int& x, const int& y) { wrong += x != i || y != -i; }, weft::read(a),
                     weft::read(b));
        weft::fork([](const int& x, int& sum) { sum += x; }, weft::read(a), weft::update(c));
      }
    });
    CHECK(wrong == 0);
    CHECK(c.get() == static_cast<int>(static_cast<unsigned>(waves) * static_cast<unsigned>(waves + 1) / 2));
  });
}

TEST_CASE("many objects live in one task") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<long> sum{0};
    rt.run([&] {
      for (long i = 0; i < width() / 4; ++i) {
        weft::shared<long> x;  // its handle goes out of scope before its tasks have run
        weft::fork([i](long& v) { v = i; }, weft::write(x));
        weft::fork([&](const long& v) { sum.fetch_add(v, std::memory_order_relaxed); },
                   weft::read(x));  // as above
      }
    });
    const long n = width() / 4;
    CHECK(sum == n * (n - 1) / 2);
  });
}
