// SPDX-License-Identifier: BSL-1.0
// Every copy, move and construction of an argument, a callable, a value or a result may throw.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/tracked.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <utility>

using weft_test::planted_failure;
using weft_test::tracked;

namespace {

/// Makes the first, the second, ... construction in a run of f throw, until a run has no failure. Returns how
/// many constructions were made to fail.
template <class F>
long fail_each(weft::runtime& rt, F&& f) {
  for (long n = 0;; ++n) {
    INFO("construction " << n);
    tracked::reset();
    tracked::until_failure = n;
    bool threw = false;
    try {
      f(rt);
    } catch (const planted_failure&) {
      threw = true;
    }
    const bool fired = tracked::until_failure < 0;
    tracked::until_failure = -1;
    CHECK(threw == fired);
    CHECK(tracked::alive == 0);
    CHECK(weft_test::works(rt));
    if (!fired) return n;
  }
}

template <class F>
void on_each_runtime(long floor, F&& f) {
  for (const unsigned workers : {1u, 3u})
    for (const bool inlining : {true, false}) {
      INFO("workers " << workers << ", inlining " << inlining);
      weft::runtime rt({.workers = workers, .inlining = inlining});
      CHECK(fail_each(rt, f) >= floor);
    }
}

tracked make(long n) { return tracked(n); }
tracked pass(tracked t) { return t; }

}  // namespace

TEST_CASE("an argument's copy or move may throw") {
  on_each_runtime(3, [](weft::runtime& rt) {
    rt.run([] {
      tracked t(1);
      weft::fork([](const tracked&) {}, t);
      weft::fork([](tracked) {}, std::move(t));
      weft::fork([](tracked, tracked) {}, tracked(2), tracked(3));
    });
  });
}

TEST_CASE("a callable's copy or move may throw") {
  on_each_runtime(2, [](weft::runtime& rt) {
    rt.run([] {
      const auto body = [t = tracked(1)] { static_cast<void>(t); };
      weft::fork(body);
      weft::fork([t = tracked(2)] { static_cast<void>(t); });
    });
  });
}

TEST_CASE("a result's construction may throw") {
  on_each_runtime(2, [](weft::runtime& rt) {
    rt.run([] {
      auto a = weft::fork(make, 1L);
      auto b = weft::fork(pass, tracked(2));
      weft::fork([](const tracked&, tracked& v) { v.value += 1; }, weft::read(a), weft::update(b));
    });
  });
}

TEST_CASE("a shared value's construction or assignment may throw") {
  on_each_runtime(2, [](weft::runtime& rt) {
    rt.run([] {
      weft::shared<tracked> a(tracked(1)), b;
      weft::fork([](weft::read<tracked> from, weft::write<tracked> to) { to = *from; }, a, b);
      weft::fork([](weft::update<tracked> v) { v = tracked(4); }, b);
    });
  });
}

TEST_CASE("what a task made is gone when its parent's sync returns") {
  for (const unsigned workers : {1u, 3u})
    for (const bool inlining : {true, false}) {
      tracked::reset();
      weft::runtime rt({.workers = workers, .inlining = inlining});
      long most = 0;
      rt.run([&] {
        const weft::shared<tracked> own(tracked(1));
        for (int i = 0; i < 50; ++i) {
          for (int k = 0; k < 4; ++k)
            weft::fork([t = tracked(2)] {
              weft::shared<tracked> a(t), b(tracked(3));
              weft::fork([](const tracked& from, tracked& to) { to = from; }, weft::read(a), weft::write(b));
              weft::fork([](tracked& v, tracked by_value) { v.value += by_value.value; }, weft::update(b),
                         tracked(4));
            });
          weft::sync();
          most = std::max(most, tracked::alive.load());
        }
      });
      INFO("workers " << workers << ", inlining " << inlining);
      CHECK(most == 1);
      CHECK(tracked::alive == 0);
    }
}

TEST_CASE("an argument or a result of run may throw") {
  on_each_runtime(2, [](weft::runtime& rt) {
    const tracked t(1);
    const tracked r = rt.run(pass, t);
    rt.run([](const tracked&, tracked) {}, r, tracked(2));
  });
}
