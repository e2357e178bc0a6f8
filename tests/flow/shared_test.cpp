// SPDX-License-Identifier: BSL-1.0
// Shared objects live until the task that made them and all below it have ended, whatever becomes of the
// handle.
#include "flow/runtimes.hpp"
#include "support/random.hpp"
#include "support/tracked.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::tracked;

namespace {

/// A value that knows whether it still lives.
class mortal {
 public:
  static inline std::atomic<int> alive{0}, misused{0};
  static void reset() { alive = misused = 0; }

  mortal() { ++alive; }
  explicit mortal(long v) : value_(v) { ++alive; }
  mortal(const mortal&) = delete;
  mortal& operator=(const mortal&) = delete;
  ~mortal() {
    misused += mark_ != living;
    mark_ = dead;
    --alive;
  }
  void set(long v) {
    misused += mark_ != living;
    value_ = v;
  }
  long get() const {
    misused += mark_ != living;
    return value_;
  }

 private:
  static constexpr std::uint64_t living = 0x1234567887654321, dead = 0xDEADDEADDEADDEAD;
  volatile std::uint64_t mark_ = living;  // the compiler must not drop the store of a dying object
  long value_ = 0;
};

struct alignas(256) wide {
  long value = 0;
};

void fill(std::size_t n, weft::write<std::vector<long>> out) { out->assign(n, 1); }

}  // namespace

TEST_CASE("an object outlives its handle until its tasks have ended") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    std::atomic<long> sum{0};
    rt.run([&] {
      for (long i = 1; i <= 20; ++i) {
        weft::shared<mortal> m;
        weft::fork([i](mortal& x) { x.set(i); }, weft::write(m));
        weft::fork([&](const mortal& x) { sum += x.get(); }, weft::read(m));
        weft::fork([&](const mortal& x) { sum += x.get(); }, weft::read(m));
      }
    });
    CHECK(sum == 2 * 210);
    CHECK(mortal::misused == 0);
    CHECK(mortal::alive == 0);
  });
}

TEST_CASE("an object outlives its task while the tasks below use it") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    std::atomic<long> sum{0};
    rt.run([&] {
      for (long i = 1; i <= 20; ++i)
        weft::fork([&sum, i] {
          weft::shared<mortal> m(i);
          weft::fork(
              [&sum](weft::update<mortal> u) {
                weft::fork(
                    [&sum](weft::update<mortal> v) {
                      weft::fork([&sum](weft::read<mortal> r) { sum += r->get(); }, v);
                    },
                    u);
                weft::fork([](mortal& v) { v.set(0); }, u);
              },
              m);
        });
    });
    CHECK(sum == 210);
    CHECK(mortal::misused == 0);
    CHECK(mortal::alive == 0);
  });
}

TEST_CASE("objects of a task have ended when the task's parent goes on after sync") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    std::vector<int> alive;
    rt.run([&] {
      for (int i = 0; i < 200; ++i) {
        for (int k = 0; k < 1 + i % 3; ++k)
          weft::fork([] {
            weft::shared<mortal> m;
            weft::fork([](mortal& x) { x.set(1); }, weft::write(m));
            weft::fork([](const mortal& x) { static_cast<void>(x.get()); }, weft::read(m));
          });
        weft::sync();
        alive.push_back(mortal::alive);
      }
    });
    CHECK(*std::max_element(alive.begin(), alive.end()) == 0);
    CHECK(mortal::misused == 0);
    CHECK(mortal::alive == 0);
  });
}

TEST_CASE("handles may end in any order") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    weft_test::random dice(5);
    std::atomic<long> sum{0};
    std::vector<std::pair<long, long>> plain;
    rt.run([&] {
      for (int round = 0; round < 30; ++round) {
        std::vector<std::unique_ptr<weft::shared<mortal>>> objects;
        std::vector<std::unique_ptr<weft::shared<long>>> numbers;
        const bool pending = round % 3 == 0;
        for (long i = 1; i <= 10; ++i) {
          objects.push_back(std::make_unique<weft::shared<mortal>>(i));
          numbers.push_back(std::make_unique<weft::shared<long>>(i));
          if (pending)
            weft::fork([&](const mortal& m, const long& n) { sum += m.get() + n; },
                       weft::read(*objects.back()), weft::read(*numbers.back()));
        }
        if (round % 2 == 0) weft::sync();
        while (!objects.empty()) {
          const auto at = static_cast<std::ptrdiff_t>(dice.below(objects.size()));
          objects.erase(objects.begin() + at);
          numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(dice.below(numbers.size())));
          if (dice.one_in(3)) {  // an object in the memory that became free
            weft::shared<mortal> young(7L);
            weft::shared<long> number(8L);
            plain.emplace_back(young.get().get(), number.get());
          }
        }
      }
    });
    CHECK(sum == 10 * 110);
    CHECK(std::all_of(plain.begin(), plain.end(),
                      [](const auto& p) { return p == std::pair<long, long>(7, 8); }));
    CHECK(mortal::misused == 0);
    CHECK(mortal::alive == 0);
  });
}

TEST_CASE("live objects keep their values while handles end out of order") {
  on_each_runtime([](weft::runtime& rt) {
    int wrong = 0;
    rt.run([&] {
      weft_test::random dice(6);
      struct entry {
        std::unique_ptr<weft::shared<std::uint64_t>> number;
        std::unique_ptr<weft::shared<std::string>> text;
        std::uint64_t value;
      };
      std::vector<entry> live;
      for (std::uint64_t i = 0; i < 2000; ++i) {
        if (live.empty() || dice.below(5) < 3) {
          live.push_back(
              {std::make_unique<weft::shared<std::uint64_t>>(i),
               std::make_unique<weft::shared<std::string>>(std::to_string(i) + std::string(30, 'x')), i});
        } else {
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(dice.below(live.size())));
        }
        if (dice.one_in(20)) {
          weft::fork([](weft::update<std::uint64_t> v) { *v += 1; },
                     *live.emplace_back(entry{std::make_unique<weft::shared<std::uint64_t>>(i),
                                              std::make_unique<weft::shared<std::string>>(
                                                  std::to_string(i + 1) + std::string(30, 'x')),
                                              i + 1})
                          .number);
          weft::sync();
        }
        if (i % 50 == 0)
          for (const entry& e : live)
            wrong +=
                e.number->get() != e.value || e.text->get() != std::to_string(e.value) + std::string(30, 'x');
      }
    });
    CHECK(wrong == 0);
  });
}

TEST_CASE("containers of handles") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    long sum = 0;
    rt.run([&] {
      std::deque<weft::shared<mortal>> all;  // ends first to last
      std::deque<weft::shared<long>> numbers;
      for (long i = 1; i <= 100; ++i) {
        all.emplace_back();
        numbers.emplace_back(i);
        weft::fork([](const long& n, mortal& m) { m.set(n); }, weft::read(numbers.back()),
                   weft::write(all.back()));
      }
      weft::sync();
      for (const auto& m : all) sum += m.get().get();
    });
    CHECK(sum == 5050);
    CHECK(mortal::misused == 0);
    CHECK(mortal::alive == 0);
  });
}

TEST_CASE("a handle may end outside tasks, after the task that made it") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    std::unique_ptr<weft::shared<long>> number;
    std::unique_ptr<weft::shared<mortal>> object;
    std::unique_ptr<weft::shared<std::string>> text;
    rt.run([&] {
      weft::fork([&] {
        number = std::make_unique<weft::shared<long>>(1L);
        object = std::make_unique<weft::shared<mortal>>(2L);
        text = std::make_unique<weft::shared<std::string>>(std::string(30, 'x'));
        weft::fork(
            [](mortal& m, std::string& s) {
              m.set(3);
              s += "y";
            },
            weft::update(*object), weft::update(*text));
      });
    });
    CHECK(mortal::alive == 0);  // the object ended with its task
    number.reset();
    object.reset();
    text.reset();
    CHECK(mortal::misused == 0);
    CHECK(weft_test::works(rt));
  });
}

TEST_CASE("an object made outside tasks lives as long as its handle") {
  mortal::reset();
  weft::runtime rt({.workers = 2});
  {
    weft::shared<mortal> m;
    weft::shared<long> n(1L);
    auto heap = std::make_unique<weft::shared<mortal>>(5L);
    CHECK(mortal::alive == 2);
    for (long i = 0; i < 5; ++i)
      rt.run([&] {
        weft::fork([i](mortal& x) { x.set(i); }, weft::write(m));
        weft::fork([](const mortal& x, long& v) { v += x.get(); }, weft::read(m), weft::update(n));
        weft::fork([](mortal& x) { x.set(x.get() + 1); }, weft::update(*heap));
      });
    CHECK(m.get().get() == 4);
    CHECK(n.get() == 11);
    CHECK(heap->get().get() == 10);
    heap.reset();
    CHECK(mortal::alive == 1);
  }
  CHECK(mortal::alive == 0);
  CHECK(mortal::misused == 0);
}

TEST_CASE("a handle made outside tasks may end in one, before and after the sync of its children") {
  weft_test::on_each_runtime([](weft::runtime& rt) {
    auto plain = std::make_unique<weft::shared<long>>(1L), other = std::make_unique<weft::shared<long>>(2L);
    auto text = std::make_unique<weft::shared<std::string>>("three");
    weft::shared<long> sum(0L);
    rt.run([&] {
      weft::fork([](long& s, const long& v) { s += v; }, weft::update(sum), weft::read(*other));
      plain.reset();  // while a child may not have run
      text.reset();
      weft::sync();
      other.reset();
      weft::fork([](long& s) { s *= 10; }, weft::update(sum));
    });
    CHECK(sum.get() == 20);
  });
}

TEST_CASE("objects made outside tasks may end in any order, with and without a value") {
  mortal::reset();
  {
    std::deque<weft::shared<mortal>> all(20);
    for (int i = 0; i < 10; ++i) all.pop_front();
    CHECK(mortal::alive == 10);
    all.emplace_back(3L);
    CHECK(all.back().get().get() == 3);
  }
  CHECK(mortal::alive == 0);
  const weft::shared<int> never_used;
  static_cast<void>(never_used);
}

TEST_CASE("values of an object: constructed in place, from several arguments, converted") {
  struct point {
    point(int a, int b) : x(a), y(b) {}
    int x, y;
  };
  const auto check = [] {
    const weft::shared<point> p(1, 2);
    const weft::shared<std::string> text = "text";
    const weft::shared<std::string> filled(std::size_t{3}, 'x');
    const weft::shared<double> number = 1;
    const weft::shared<std::unique_ptr<int>> owner(std::make_unique<int>(9));
    const weft::shared<std::array<int, 3>> plain(std::array<int, 3>{1, 2, 3});
    return p.get().x + p.get().y == 3 && text.get() == "text" && filled.get() == "xxx" &&
           number.get() == 1.0 && *owner.get() == 9 && plain.get()[2] == 3;
  };
  CHECK(check());
  weft::runtime rt({.workers = 1});
  CHECK(rt.run(check));
}

TEST_CASE("objects with more than the usual alignment, and very large ones") {
  const auto check = [](int i) {
    weft::shared<char> odd('x');
    weft::shared<wide> w;
    weft::shared<std::array<long, 500'000>> large;
    const char after = 'y';
    weft::shared<char> more(after);
    bool right = false;
    weft::fork([i](wide& x) { x.value = i; }, weft::write(w));
    weft::fork([i](std::array<long, 500'000>& x) { x.front() = x.back() = i; }, weft::write(large));
    weft::fork(
        [&](const wide& x, const std::array<long, 500'000>& y) {
          right = reinterpret_cast<std::uintptr_t>(&x) % 256 == 0 && x.value == i && y.front() == i &&
                  y.back() == i;
        },
        weft::read(w), weft::read(large));
    weft::sync();
    return right && odd.get() == 'x' && more.get() == 'y';
  };
  on_each_runtime([&](weft::runtime& rt) {
    int right = 0;
    rt.run([&] {
      for (int i = 0; i < 5; ++i) right += check(i);
    });
    CHECK(right == 5);
  });
  const weft::shared<wide> outside(wide{3});
  CHECK(reinterpret_cast<std::uintptr_t>(&outside.get()) % 256 == 0);
}

TEST_CASE("a constructor that throws leaves nothing, in tasks and outside") {
  struct fails {
    tracked counted;
    explicit fails(int n) : counted(n) { throw std::out_of_range("no"); }
  };
  struct fails_plainly {
    int n;
    explicit fails_plainly(int v) : n(v) { throw std::out_of_range("no"); }
  };
  tracked::reset();
  CHECK_THROWS_AS(weft::shared<fails>(1), std::out_of_range);
  CHECK_THROWS_AS(weft::shared<fails_plainly>(1), std::out_of_range);
  on_each_runtime([](weft::runtime& rt) {
    int caught = 0;
    bool right = false;
    rt.run([&] {
      weft::shared<long> before(1L);
      for (int i = 0; i < 20; ++i) {
        if (i % 2 == 0) weft::fork([](long& v) { v += 1; }, weft::update(before));
        try {
          const weft::shared<fails> f(i);
        } catch (const std::out_of_range&) {
          ++caught;
        }
        try {
          const weft::shared<fails_plainly> f(i);
        } catch (const std::out_of_range&) {
          ++caught;
        }
        if (i % 3 == 0) weft::sync();
      }
      weft::sync();
      weft::shared<std::string> after("after");
      right = before.get() == 11 && after.get() == "after";
    });
    CHECK(caught == 40);
    CHECK(right);
    CHECK(tracked::alive == 0);
  });
}

TEST_CASE("objects end when a body or a child throws") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    for (const bool in_child : {false, true}) {
      CHECK_THROWS_AS(rt.run([=] {
        weft::shared<mortal> a(1L), b;
        weft::fork([](const mortal& x, mortal& y) { y.set(x.get()); }, weft::read(a), weft::write(b));
        if (in_child)
          weft::fork(
              [](mortal& y) {
                y.set(2);
                throw 1;
              },
              weft::update(b));
        weft::fork([](const mortal& y) { static_cast<void>(y.get()); }, weft::read(b));
        weft::shared<mortal> c(3L);
        if (!in_child) throw 1;
      }),
                      int);
      CHECK(mortal::alive == 0);
    }
    CHECK(mortal::misused == 0);
  });
}

TEST_CASE("an initial value may be read before and between forks of readers") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> right{0};
    rt.run([&] {
      weft::shared<long> x(3L);
      right += x.get() == 3;
      weft::fork([&](const long& v) { right += v == 3; }, weft::read(x));
      right += x.get() == 3;
      weft::fork([&](const long& v) { right += v == 3; }, weft::read(x));
    });
    CHECK(right == 4);
  });
}

TEST_CASE("memory of objects is used again while a body goes on") {
  on_each_runtime([](weft::runtime& rt) {
    long sum = 0;
    rt.run([&] {
      const void* lowest = nullptr;
      const void* highest = nullptr;
      for (int i = 0; i < 20'000; ++i) {
        weft::shared<std::array<char, 1000>> x(std::array<char, 1000>{});
        const void* const here = &x.get();
        if (lowest == nullptr || std::less<>{}(here, lowest)) lowest = here;
        if (highest == nullptr || std::less<>{}(highest, here)) highest = here;
      }
      sum = static_cast<const char*>(highest) - static_cast<const char*>(lowest);
    });
    CHECK(sum < 100'000);
  });
}

TEST_CASE("memory of objects whose handles ended before their tasks is used again after sync") {
  on_each_runtime([](weft::runtime& rt) {
    mortal::reset();
    std::uintptr_t lowest = UINTPTR_MAX, highest = 0;
    const auto touch = [&](auto& place) {
      const auto at = reinterpret_cast<std::uintptr_t>(&place);
      lowest = std::min(lowest, at);
      highest = std::max(highest, at);
    };
    rt.run([&] {
      std::deque<weft::shared<long>> own;
      for (int i = 0; i < 3000; ++i) {
        if (i % 1000 == 0) own.emplace_back(i);
        weft::fork({.local = true}, [&] {  // on this strand, so that there is one place to look at
          weft::shared<long> a;
          weft::shared<mortal> b;
          weft::shared<long> c;
          weft::fork({.local = true}, [&touch](long& x) { touch(x = 1); }, weft::write(a));
          weft::fork({.local = true}, [&touch](mortal& x) { touch(x); }, weft::update(b));
          weft::fork({.local = true}, [&touch](long& x) { touch(x = 2); }, weft::write(c));
        });
        weft::sync();
        CHECK(mortal::alive == 0);
      }
      for (int i = 0; i < 3; ++i) CHECK(own[static_cast<std::size_t>(i)].get() == 1000 * i);
    });
    CHECK(highest - lowest < 1000);
    CHECK(mortal::misused == 0);
  });
}

TEST_CASE("thieves use objects whose handles have ended") {
  weft::runtime rt(weft_test::two_and_deferring());
  mortal::reset();
  int stolen = 0;
  std::atomic<long> sum{0};
  constexpr int rounds = 50;
  for (int i = 0; i < rounds; ++i) {
    std::atomic<bool> started{false}, handle_ended{false};
    rt.run([&] {
      {
        weft::shared<mortal> m(1L);
        weft::shared<std::vector<long>> v;
        weft::fork(
            [&](weft::update<mortal> u, weft::update<std::vector<long>> w) {
              started = true;
              weft_test::wait_until([&] { return handle_ended.load(); });
              weft::fork(fill, std::size_t{10}, w);
              weft::fork([&](const mortal& x) { sum += x.get(); }, weft::read(u));
            },
            m, v);
        stolen += weft_test::wait_until([&] { return started.load(); });
      }
      handle_ended = true;
    });
  }
  CHECK(stolen == rounds);
  CHECK(sum == rounds);
  CHECK(rt.counters().steals >= rounds);
  CHECK(mortal::misused == 0);
  CHECK(mortal::alive == 0);
}
