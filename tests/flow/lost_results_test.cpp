// SPDX-License-Identifier: BSL-1.0
// Results that were never produced, because their tasks failed or were dropped: whoever delegates a right to
// read one stops the program, whatever the way; a right to change one begins with a default value.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using weft_test::on_each_runtime;
using weft_test::wait_until;

namespace {

constexpr bool in_graphs = WEFT_LARGE_FRAME == 2;

struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};
no_default operator+(no_default a, no_default b) { return no_default(a.value + b.value); }

/// Knows whether it was constructed where it is assigned to.
struct constructed {
  constructed() noexcept = default;
  constructed(const constructed&) noexcept {}
  constructed& operator=(const constructed&) noexcept {
    if (self != this) ++missing;
    return *this;
  }
  ~constructed() { self = nullptr; }
  const constructed* volatile self = this;
  static inline std::atomic<int> missing{0};
};

/// Two kinds of results: a plain one, with its mark behind it, and one with a destructor.
template <class R>
R made() {
  return R(1);
}
template <>
std::string made() {
  return "made";
}

/// A way in which a task is given a right on `r`; `ran` counts its bodies.
template <class R>
struct way {
  const char* name;
  std::function<void(weft::runtime&, weft::shared<R>& r, std::atomic<int>& ran)> give;
};

template <class R>
std::vector<way<R>> ways_to_read() {
  using read = weft::read<R>;
  using weak_read = weft::weak_read<R>;
  using object = weft::shared<R>;
  using counter = std::atomic<int>;
  const auto hand_on = [](counter& ran) {
    return [&ran](weak_read w) { weft::fork([&ran](const R&) { ++ran; }, weft::read(w)); };
  };
  return {
      {"argument", [](weft::runtime&, object& r,
                      counter& ran) { weft::fork([&ran](const R&) { ++ran; }, weft::read(r)); }},
      {"parameter", [](weft::runtime&, object& r, counter& ran) { weft::fork([&ran](read) { ++ran; }, r); }},
      {"one of several",
       [](weft::runtime&, object& r, counter& ran) {
         weft::shared<int> x(1);
         weft::fork([&ran](int&, read, int) { ++ran; }, weft::update(x), r, 2);
       }},
      {"right taken before",
       [](weft::runtime&, object& r, counter& ran) {
         const weft::read right(r);
         weft::fork([&ran](const R&) { ++ran; }, right);
       }},
      {"list",
       [](weft::runtime&, object& r, counter& ran) {
         object good(made<R>());
         std::vector<read> list{good, r};
         weft::fork([&ran](const std::vector<read>&) { ++ran; }, std::move(list));
       }},
      {"array of rights",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork([&ran](std::array<read, 1>) { ++ran; }, std::array<read, 1>{r});
       }},
      {"named task",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork({.name = "reader", .priority = 1}, [&ran](const R&) { ++ran; }, weft::read(r));
       }},
      {"task with an event",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork({.event = true}, [&ran](const R&) { ++ran; }, weft::read(r));
       }},
      {"result of a result",
       [](weft::runtime&, object& r, counter& ran) {
         const auto copy = weft::fork(
             [&ran](const R& v) {
               ++ran;
               return v;
             },
             weft::read(r));
       }},
      {"weak right",
       [hand_on](weft::runtime&, object& r, counter& ran) { weft::fork(hand_on(ran), weft::weak_read(r)); }},
      {"weak parameter", [hand_on](weft::runtime&, object& r, counter& ran) { weft::fork(hand_on(ran), r); }},
      {"list of weak rights",
       [hand_on](weft::runtime&, object& r, counter& ran) {
         weft::fork([&, on = hand_on(ran)](std::vector<weak_read> list) { on(list.at(0)); },
                    std::vector<weak_read>{r});
       }},
      {"loop", [](weft::runtime&, object& r,
                  counter& ran) { weft::fork_for(0, 3, [&ran](int, const R&) { ++ran; }, weft::read(r)); }},
      {"parameter of a loop",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork_for({.name = "rows"}, 0, 3, [&ran](int, read) { ++ran; }, r);
       }},
      {"weak loop",
       [hand_on](weft::runtime&, object& r, counter& ran) {
         weft::fork_for(0, 3, [on = hand_on(ran)](int, weak_read w) { on(w); }, r);
       }},
      {"run", [](weft::runtime& rt, object& r,
                 counter& ran) { rt.run([&ran](const R&) { ++ran; }, weft::read(r)); }},
      {"run with a value",
       [](weft::runtime& rt, object& r, counter& ran) { rt.run([&ran](read) { return ++ran; }, r); }},
      {"recorded",
       [](weft::runtime&, object& r, counter& ran) {
         weft::recorded step;
         step([&] { weft::fork([&ran](const R&) { ++ran; }, weft::read(r)); });
       }},
      {"within what a record replays",
       [](weft::runtime&, object& r, counter& ran) {
         object good(made<R>());
         weft::recorded step;
         for (object* x : {&good, &good, &r})
           step([&] {
             for (int i = 0; i < 4; ++i)
               if (i != 3)
                 weft::fork([](const R&) {}, weft::read(good));
               else
                 weft::fork([&ran, x, &r](const R&) { ran += x == &r; }, weft::read(*x));
           });
       }},
  };
}

template <class R>
std::vector<way<R>> ways_to_change() {
  using object = weft::shared<R>;
  using counter = std::atomic<int>;
  using update = weft::update<R>;
  const auto change = [](counter& ran) {
    return [&ran](R& v) {
      ++ran;
      v = v + R(1);
    };
  };
  return {
      {"write",
       [change](weft::runtime&, object& r, counter& ran) { weft::fork(change(ran), weft::write(r)); }},
      {"parameter that writes",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork(
             [&ran](weft::write<R> v) {
               ++ran;
               v = R(1);
             },
             r);
       }},
      {"update",
       [change](weft::runtime&, object& r, counter& ran) { weft::fork(change(ran), weft::update(r)); }},
      {"commute",
       [change](weft::runtime&, object& r, counter& ran) { weft::fork(change(ran), weft::commute(r)); }},
      {"reduce",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork(
             [&ran](auto sum) {
               ++ran;
               sum += R(1);
             },
             weft::reduce(r, std::plus<>{}));
       }},
      {"list",
       [change](weft::runtime&, object& r, counter& ran) {
         weft::fork([on = change(ran)](const std::vector<update>& list) { on(*list.at(0)); },
                    std::vector<update>{r});
       }},
      {"weak write",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork(
             [&ran](weft::weak_write<R> w) {
               weft::fork(
                   [&ran](R& v) {
                     ++ran;
                     v = R(1);
                   },
                   weft::write(w));
             },
             r);
       }},
      {"weak update",
       [change](weft::runtime&, object& r, counter& ran) {
         weft::fork([on = change(ran)](weft::weak_update<R> w) { weft::fork(on, weft::update(w)); },
                    weft::weak_update(r));
       }},
      {"weak reduce",
       [](weft::runtime&, object& r, counter& ran) {
         weft::fork(
             [&ran](auto w) {
               weft::fork(
                   [&ran](auto sum) {
                     ++ran;
                     sum += R(1);
                   },
                   weft::reduce(w));
             },
             weft::weak_reduce(r, std::plus<>{}));
       }},
      {"loop",
       [change](weft::runtime&, object& r, counter& ran) {
         weft::fork_for(0, 1, [on = change(ran)](int, R& v) { on(v); }, weft::update(r));
       }},
      {"run", [change](weft::runtime& rt, object& r, counter& ran) { rt.run(change(ran), weft::update(r)); }},
  };
}

/// How a result comes to be lost.
enum class loss { failed, stolen_and_failed, dropped };

/// A result that will be lost when the caller has waited, with the exception 1.
template <class R>
weft::shared<R> lost(const weft::runtime& rt, loss how) {
  if (how == loss::failed) return weft::fork([]() -> R { throw 1; });
  if (how == loss::dropped) {
    weft::shared<int> x(0);
    weft::fork([](int&) { throw 1; }, weft::update(x));
    return weft::fork([](const int&) { return made<R>(); }, weft::read(x));
  }
  // The thief takes the first task, and meets all the others when that has ended. If none comes, the result
  // is lost all the same, and the test fails for what is printed.
  struct stage {
    std::atomic<bool> set{false}, begun{false};
  };
  const auto on = std::make_shared<stage>();
  weft::fork([on] { wait_until([&] { return on->set.load(); }); });
  struct waiting {
    const weft::runtime& rt;
    stage& on;
    ~waiting() {
      on.set = true;
      if (!wait_until([&] { return on.begun && (!in_graphs || rt.counters().promotions != 0); }))
        std::fputs("no thief came\n", stderr);
    }
  } const at_end{rt, *on};
  const auto fail = [on]() -> R {
    on->begun = true;
    throw 1;
  };
  for (int i = 0; i < 4; ++i) weft::fork([](int) {}, i);
  return weft::fork(fail);
}

/// Waits and catches.
int caught() {
  try {
    weft::sync();
  } catch (int n) {
    return n;
  }
  return 0;
}

/// Calls f with the runtimes, and the losses that each of them can have.
template <class F>
void on_each_loss(F&& f) {
  for (const auto& options :
       {weft_test::alone_and_inlining(), weft_test::alone_and_deferring(), weft_test::two_and_deferring()})
    for (const loss how : {loss::failed, loss::stolen_and_failed, loss::dropped})
      if (how != loss::stolen_and_failed || options.workers == 2) f(options, how);
}

/// Checks that each way to delegate a lost result stops the program with the sentence.
template <class R>
void check_stopped(const std::vector<way<R>>& ways, const std::string& sentence) {
  for (const way<R>& w : ways)
    on_each_loss([&](const weft::runtime_options& options, loss how) {
      const auto child = weft_test::run_in_child([&] {
        weft::runtime rt(options);
        rt.run([&] {
          weft::fork({.name = "parent"}, [&] {
            std::atomic<int> ran{0};
            weft::shared<R> r = lost<R>(rt, how);
            if (caught() != 1) return;
            w.give(rt, r, ran);
            weft::sync();
            std::printf("went on, %d bodies ran", ran.load());
          });
        });
      });
      INFO(w.name << ", workers " << options.workers << ", inlining " << options.inlining << ", loss "
                  << static_cast<int>(how) << ": " << child.output);
      CHECK(child.aborted());
      CHECK(child.output == sentence);
    });
}

const char* const no_value =
    "weft: task 'parent' delegates the right to read the result of a task that failed or was dropped: there "
    "is "
    "no value\n";

/// Checks that a right on a result which is delegated before the failure is dealt with is no violation: the
/// task is dropped, and the exception leaves run.
template <class R>
void check_dropped(const std::vector<way<R>>& ways) {
  for (const way<R>& w : ways)
    on_each_loss([&](const weft::runtime_options& options, loss how) {
      INFO(w.name << ", workers " << options.workers << ", inlining " << options.inlining << ", loss "
                  << static_cast<int>(how));
      weft::runtime rt(options);
      std::atomic<int> ran{0};
      CHECK_THROWS_AS(rt.run([&] {
        weft::shared<R> r = lost<R>(rt, how);
        w.give(rt, r, ran);
      }),
                      int);
      CHECK(ran == 0);
      // Nor in a stopped run, where all the same is dropped.
      CHECK_THROWS_AS(rt.run([&] {
        weft::this_task::request_stop();
        auto r = weft::fork([] { return made<R>(); });
        try {
          weft::sync();
        } catch (const weft::cancelled&) {
        }
        w.give(rt, r, ran);
      }),
                      weft::cancelled);
      CHECK(ran == 0);
    });
}

}  // namespace

TEST_CASE("a right to read a lost result stops the program, whatever the way") {
  check_stopped<int>(ways_to_read<int>(), no_value);
  check_stopped<std::string>(ways_to_read<std::string>(), no_value);
}

TEST_CASE("a right to change a lost result that has no default value stops the program") {
  check_stopped<no_default>(ways_to_change<no_default>(),
                            "weft: task 'parent' delegates the right to change the result of a task that "
                            "failed or was dropped: there "
                            "is no value, and no default to begin with\n");
}

TEST_CASE("before sync the exception counts, not who wants the lost result") {
  check_dropped<int>(ways_to_read<int>());
  check_dropped<std::string>(ways_to_read<std::string>());
  check_dropped<no_default>(ways_to_change<no_default>());
}

TEST_CASE("a lost result that is changed begins with a default value, and may be read from then on") {
  for (const way<int>& change : ways_to_change<int>())
    on_each_loss([&](const weft::runtime_options& options, loss how) {
      INFO(change.name << ", workers " << options.workers << ", inlining " << options.inlining << ", loss "
                       << static_cast<int>(how));
      weft::runtime rt(options);
      std::atomic<int> changed{0}, read{0};
      int value = 0;
      rt.run([&] {
        auto r = lost<int>(rt, how);
        if (caught() != 1) return;
        change.give(rt, r, changed);
        for (const way<int>& w : ways_to_read<int>()) w.give(rt, r, read);
        weft::sync();
        value = r.get();
      });
      CHECK(changed == 1);
      CHECK(value == 1);
      CHECK(read >= static_cast<int>(ways_to_read<int>().size()));
    });
}

TEST_CASE("the results of tasks that ended well before one failed are delegated as ever") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> ran{0};
    rt.run([&] {
      auto good = weft::fork([] { return made<std::string>(); });
      auto bad = weft::fork([]() -> std::string { throw 1; });
      if (caught() != 1) return;
      for (const way<std::string>& w : ways_to_read<std::string>()) w.give(rt, good, ran);
    });
    CHECK(ran >= static_cast<int>(ways_to_read<std::string>().size()));
  });
}

TEST_CASE("a new version of a result that was lost meanwhile is not brought to where there is none") {
  weft::runtime rt({.workers = 3, .inlining = false});
  for (int round = 0; round < 20; ++round) {
    const bool stops = round % 2 == 0;
    std::atomic<bool> written{false};
    int thrown = 0;
    try {
      rt.run([&] {
        weft::shared<int> gate(0);
        weft::fork([&](int&) { wait_until([&] { return !in_graphs || written; }); }, weft::update(gate));
        auto r = weft::fork(
            [&](const int&) -> constructed {
              if (!stops) throw 1;
              return {};
            },
            weft::read(gate));
        weft::fork(
            [&](constructed& v) {
              v = constructed();
              if (stops) weft::this_task::request_stop();
              written = true;
            },
            weft::write(r));
        for (int i = 0; i < 4; ++i) weft::fork([](int) {}, i);
        wait_until([&] { return !in_graphs || written; });
      });
    } catch (int n) {
      thrown = n;
    } catch (const weft::cancelled&) {
      thrown = 2;
    }
    CHECK(thrown == (stops ? 2 : 1));
    if (in_graphs || stops) CHECK(written);
  }
  if (in_graphs) CHECK(rt.counters().renames >= 20);
  CHECK(constructed::missing == 0);
}

TEST_CASE("run in a task, with rights, waits for the children that may change what it is given") {
  on_each_runtime([](weft::runtime& rt) {
    long from_result = 0, from_object = 0;
    int thrown = 0;
    bool ran = false;
    weft::runtime other({.workers = 1});
    rt.run([&] {
      const auto r = weft::fork([] {
        std::this_thread::yield();
        return 7L;
      });
      from_result = rt.run([](const long& v) { return v; }, weft::read(r));
      long x = 0;
      weft::fork([](long& v) { v = 8; }, weft::update(weft::borrow(x)));
      other.run([&](std::vector<weft::update<long>> list) { from_object = *list.at(0); },
                std::vector<weft::update<long>>{weft::borrow(x)});
      const auto failing = weft::fork([]() -> long { throw 9; });
      try {
        rt.run([&](const long&) { ran = true; }, weft::read(failing));
      } catch (int n) {
        thrown = n;
      }
    });
    CHECK(from_result == 7);
    CHECK(from_object == 8);
    CHECK(thrown == 9);
    CHECK_FALSE(ran);
  });
}
