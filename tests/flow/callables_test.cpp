// SPDX-License-Identifier: BSL-1.0
// What can be forked: functions, lambdas, function objects of every kind; each task has its own copy.
#include "flow/runtimes.hpp"
#include "support/tracked.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

std::atomic<int> calls{0};
void count_call() { ++calls; }
void count_noexcept(int n) noexcept { calls += n; }
int twice(int n) { return 2 * n; }

/// The overload that was chosen.
struct overloaded {
  std::atomic<int>* chosen;
  void operator()(int) const { *chosen += 1; }
  void operator()(const std::string&) const { *chosen += 10; }
  void operator()(int, int) const { *chosen += 100; }
  template <class T>
  void operator()(T, T, T) const {
    *chosen += 1000;
  }
};

/// A call operator that may be used on objects that are not const, and one for those that are.
struct either {
  std::atomic<int>* chosen;
  void operator()() { *chosen = 1; }
  void operator()() const { *chosen = 2; }
};

struct by_value_category {
  std::atomic<int>* chosen;
  void operator()() && { *chosen = 1; }
  void operator()() const& { *chosen = 2; }
};

}  // namespace

TEST_CASE("what a task's callable owns is released when the task has ended") {
  on_each_runtime([](weft::runtime& rt) {
    rt.run([] {
      const auto owned = std::make_shared<int>(1);
      auto task = [kept = owned] {};
      weft::fork(std::move(task));
      weft::sync();
      CHECK(owned.use_count() == 1);
    });
  });
}

TEST_CASE("call operators with every qualifier declare their parameters") {
  struct by_const_reference {
    void operator()(weft::update<int> x) const& noexcept { *x += 1; }
  };
  struct of_a_temporary {
    void operator()(weft::update<int> x) && noexcept { *x += 10; }
  };
  on_each_runtime([](weft::runtime& rt) {
    int x = 0;
    rt.run([&] {
      weft::fork(by_const_reference(), weft::update(weft::borrow(x)));
      weft::fork(of_a_temporary(), weft::update(weft::borrow(x)));
    });
    CHECK(x == 11);
  });
}

TEST_CASE("functions, by name, by pointer and by reference") {
  on_each_runtime([](weft::runtime& rt) {
    calls = 0;
    int result = 0;
    rt.run([&] {
      weft::fork(count_call);
      weft::fork(&count_call);
      void (*pointer)() = count_call;
      weft::fork(pointer);
      void (&reference)() = count_call;
      weft::fork(reference);
      weft::fork(count_noexcept, 10);
      void (*const silent)(int) noexcept = count_noexcept;
      weft::fork(silent, 100);
      auto r = weft::fork(twice, 21);
      weft::sync();
      result = r.get();
    });
    CHECK(calls == 114);
    CHECK(result == 42);
  });
}

TEST_CASE("library function objects") {
  on_each_runtime([](weft::runtime& rt) {
    calls = 0;
    int sum = 0;
    rt.run([&] {
      const std::function<void(int)> f = [](int n) { calls += n; };
      weft::fork(f, 1);
      weft::fork(std::function<void(int)>(f), 10);
      weft::fork(std::ref(f), 100);
      weft::fork(std::bind_front(count_noexcept, 1000));
      auto r = weft::fork(std::plus<>{}, 1, 2);
      weft::sync();
      sum = r.get();
    });
    CHECK(calls == 1111);
    CHECK(sum == 3);
  });
}

TEST_CASE("lambdas: generic, noexcept, capturing what can only be moved") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> sum{0};
    weft::shared<int> object(5);
    rt.run([&] {
      weft::fork([&](auto n) { sum += static_cast<int>(n); }, 1L);
      weft::fork([&](auto&&... n) { sum += (static_cast<int>(n) + ...); }, 1, 2.0, 'a');
      weft::fork([&](const auto& v, auto k) { sum += v * k; }, weft::read(object), 2);
      weft::fork([](auto& v) { v += 1; }, weft::update(object));
      weft::fork([&]() noexcept { sum += 1; });
      weft::fork([&, p = std::make_unique<int>(1000)] { sum += *p; });
      auto movable = [&, p = std::make_unique<int>(2000)] { sum += *p; };
      weft::fork(std::move(movable));
    });
    CHECK(sum == 1 + (1 + 2 + 'a') + 10 + 1 + 1000 + 2000);
    CHECK(object.get() == 6);
  });
}

TEST_CASE("of several call operators the one that fits the arguments is called") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> chosen{0};
    weft::shared<int> object(1);
    weft::shared<std::string> text("x");
    rt.run([&] {
      const overloaded f{&chosen};
      weft::fork(f, 1);
      weft::fork(f, std::string("x"));
      weft::fork(f, 1, 2);
      weft::fork(f, 1.5, 2.5, 3.5);
      weft::fork(f, weft::read(object));
      weft::fork(f, weft::read(text));
      weft::fork(f, weft::update(object), 3);
    });
    CHECK(chosen == 1 + 10 + 100 + 1000 + 1 + 10 + 100);
  });
}

TEST_CASE("a mutable lambda changes its task's copy only") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> seen{0};
    int left = 0;
    rt.run([&] {
      auto counter = [&, n = 0]() mutable {
        seen += ++n;
        return n;
      };
      weft::fork(counter);
      weft::fork(counter);
      auto& again = counter;
      weft::fork(again);
      weft::fork(std::as_const(counter));
      weft::sync();
      left = counter() - 1;
    });
    CHECK(seen == 5);  // each of four tasks began with 0, and so did the call
    CHECK(left == 0);
  });
}

TEST_CASE("a function object that changes itself changes its task's copy only") {
  struct accumulator {
    std::vector<int> values;
    std::atomic<int>* size;
    void operator()(int v) {
      values.push_back(v);
      *size += static_cast<int>(values.size());
    }
  };
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> sizes{0};
    std::size_t left = 9;
    rt.run([&] {
      accumulator a{{}, &sizes};
      for (int i = 0; i < 10; ++i) weft::fork(a, i);
      weft::sync();
      left = a.values.size();
    });
    CHECK(sizes == 10);
    CHECK(left == 0);
  });
}

TEST_CASE("which call operator is called does not depend on where the task runs") {
  const auto chosen_by = [](const weft::runtime_options& o, auto fork_it) {
    weft::runtime rt(o);
    std::atomic<int> chosen{0};
    rt.run([&] { fork_it(chosen); });
    return chosen.load();
  };
  const auto same = [&](auto fork_it) {
    CHECK(chosen_by(weft_test::alone_and_inlining(), fork_it) ==
          chosen_by(weft_test::alone_and_deferring(), fork_it));
  };
  same([](std::atomic<int>& chosen) { weft::fork(either{&chosen}); });
  same([](std::atomic<int>& chosen) {
    either e{&chosen};
    weft::fork(e);
  });
  same([](std::atomic<int>& chosen) {
    const either e{&chosen};
    weft::fork(e);
  });
  same([](std::atomic<int>& chosen) { weft::fork(by_value_category{&chosen}); });
  same([](std::atomic<int>& chosen) {
    by_value_category c{&chosen};
    weft::fork(c);
  });
}

TEST_CASE("a callable is copied at most once, and its copies end") {
  on_each_runtime([](weft::runtime& rt) {
    tracked::reset();
    std::atomic<long> sum{0};
    rt.run([&] {
      const auto body = [&, t = tracked(3)] { sum += t.value; };
      for (int i = 0; i < 10; ++i) weft::fork(body);
      weft::fork([&, t = tracked(4)] { sum += t.value; });
    });
    CHECK(sum == 34);
    CHECK(tracked::copies <= 10);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("a callable may be changed or may end after the fork") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> wrong{0};
    rt.run([&] {
      struct reader {
        std::string text;
        std::atomic<int>* wrong;
        void operator()() const { *wrong += text != "at the fork"; }
      };
      {
        reader r{"at the fork", &wrong};
        weft::fork(r);
        r.text = "later";
      }
      auto other = std::make_unique<reader>(reader{"at the fork", &wrong});
      weft::fork(*other);
      other.reset();
    });
    CHECK(wrong == 0);
  });
}

TEST_CASE("run takes the same callables") {
  weft::runtime rt({.workers = 2});
  calls = 0;
  rt.run(count_call);
  rt.run(&count_noexcept, 10);
  CHECK(calls == 11);
  CHECK(rt.run(twice, 4) == 8);
  CHECK(rt.run(std::plus<>{}, std::string("a"), "b") == "ab");
  CHECK(rt.run([](auto a, auto b) { return a * b; }, 6, 7) == 42);
  int n = 0;
  auto counter = [n]() mutable { return ++n; };
  CHECK(rt.run(counter) == 1);
  CHECK(rt.run(counter) == 1);
  CHECK(rt.run([p = std::make_unique<int>(5)] { return *p; }) == 5);
}
