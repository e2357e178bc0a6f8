// SPDX-License-Identifier: BSL-1.0
// Intervals, and steal functions: what thieves take from a running body, and where it stands in reference
// order.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <weft/threads.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

using weft_test::contains;
using weft_test::on_each_runtime;
using weft_test::wait_until;

namespace {

using text = weft::reduce<std::string, std::plus<>>;

/// Waits until `happened()`; throws if that takes too long. In tasks that run at the same time, where nobody
/// may assert.
template <class F>
void expect(F happened) {
  if (!wait_until(happened)) throw std::logic_error("waited in vain");
}

/// Appends the letters [first, last), one at a time, and gives half of them away whenever a thief asks. Every
/// part waits at its first letter until `parts` of them have begun: so many thefts are forced.
struct letters {
  std::atomic<int>& begun;
  int parts;

  void operator()(char first, char last, text out) const {
    ++begun;
    weft::interval<char> left(first, last);
    const weft::steal_function give([&](weft::thief& t) {
      if (const auto part = left.take_back_half(1)) t.fork(*this, part->first, part->last, out);
    });
    expect([&] { return begun >= parts; });
    while (const auto part = left.take_front(1)) out += std::string(1, part->first);
  }
};

/// A body with one unit of work, which only a thief can take: the body waits until `taken`.
template <class Take>
void give_one(std::atomic<bool>& taken, Take take) {
  std::atomic<bool> there{true};
  const weft::steal_function give([&](weft::thief& t) {
    if (there.exchange(false)) take(t);
  });
  expect([&] { return taken.load(); });
}

/// The runtimes on which something can be stolen.
template <class F>
void on_each_with_thieves(F&& f) {
  on_each_runtime([&](weft::runtime& rt) {
    if (rt.workers() > 1) f(rt);
  });
}

}  // namespace

TEST_CASE("an interval gives each integer once, to its owner or a thief") {
  weft::interval<int> left(3, 10);
  CHECK(left.size() == 7);
  auto part = left.take_front(2);
  REQUIRE(part);
  CHECK((part->first == 3 && part->last == 5));
  part = left.take_back_half(2);
  REQUIRE(part);
  CHECK((part->first == 8 && part->last == 10));
  CHECK_FALSE(left.take_back_half(2));  // three are left
  CHECK_FALSE(left.take_front(0));
  part = left.take_back_half(0);
  REQUIRE(part);
  CHECK((part->first == 7 && part->last == 8));
  part = left.take_front(100);
  REQUIRE(part);
  CHECK((part->first == 5 && part->last == 7));
  CHECK_FALSE(left.take_front(1));
  CHECK_FALSE(left.take_back_half(1));
  CHECK(left.size() == 0);
  CHECK_FALSE(weft::interval<int>(4, 2).take_front(1));
}

TEST_CASE("intervals of whole integer types") {
  using limits = std::numeric_limits<std::int64_t>;
  weft::interval<std::int64_t> wide(limits::min(), limits::max());
  const auto back = wide.take_back_half(1);
  REQUIRE(back);
  CHECK((back->first == 0 && back->last == limits::max()));
  const auto front = wide.take_front(std::uint64_t{1} << 63);
  REQUIRE(front);
  CHECK((front->first == limits::min() && front->last == 0));
  weft::interval<unsigned char> bytes(0, 255);
  const auto half = bytes.take_back_half(1);
  REQUIRE(half);
  CHECK((half->first == 128 && half->last == 255));
}

TEST_CASE("owner and thieves who meet take nothing twice and leave nothing") {
  const int rounds = 300;
  weft::runtime rt({.workers = 1});
  for (int round = 0; round < rounds; ++round) {
    const int n = 1 + round % 40;
    weft::interval<int> left(0, n);
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(n));
    const auto note = [&](const weft::interval<int>::part& p) {
      for (int i = p.first; i < p.last; ++i) ++times[static_cast<std::size_t>(i)];
    };
    std::atomic<bool> ready{false}, over{false};
    std::thread thief([&] {
      ready = true;
      while (!over)
        if (const auto part = left.take_back_half(1)) note(*part);
    });
    while (!ready) std::this_thread::yield();
    while (const auto part = left.take_front(static_cast<unsigned>(1 + round % 3))) note(*part);
    over = true;
    thief.join();
    for (const auto& t : times) REQUIRE(t == 1);
  }
}

TEST_CASE("what thieves take stands behind the body, later thefts before earlier ones") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> begun{0};
    weft::shared<std::string> out(std::string{});
    const int parts = static_cast<int>(rt.workers());
    rt.run([&] {
      weft::fork([](text t) { t += "<"; }, weft::reduce(out, std::plus<>{}));
      weft::fork(letters{begun, parts}, 'a', 'z', weft::reduce(out, std::plus<>{}));
      weft::fork([](text t) { t += ">"; }, weft::reduce(out, std::plus<>{}));
    });
    CHECK(out.get() == "<abcdefghijklmnopqrstuvwxy>");
    CHECK(begun >= parts);
  });
}

TEST_CASE("what the body forks comes before what thieves took earlier") {
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> taken{false};
    weft::shared<std::string> out(std::string{});
    rt.run([&] {
      weft::fork(
          [&](text t) {
            const auto say = [](const char* s, text to) { to += s; };
            t += "body ";
            {
              std::atomic<int> left{2};
              const weft::steal_function give([&](weft::thief& by) {
                if (left == 2) by.fork(say, "second ", t), left = 1;
                if (left == 1) by.fork([&](text to) { to += "first ", taken = true; }, t), left = 0;
              });
              expect([&] { return taken.load(); });
              weft::fork(say, "child ", t);
            }
          },
          weft::reduce(out, std::plus<>{}));
      weft::fork([](text t) { t += "later"; }, weft::reduce(out, std::plus<>{}));
    });
    CHECK(out.get() == "body child first second later");
  });
}

TEST_CASE("later tasks wait for what thieves took") {
  on_each_with_thieves([](weft::runtime& rt) {
    weft::shared<int> in(1), sum(0);
    std::atomic<bool> taken{false};
    int seen = 0;
    rt.run([&] {
      weft::fork(
          [&](weft::read<int> x, weft::reduce<int, std::plus<>> total) {
            give_one(taken, [&](weft::thief& t) {
              t.fork(
                  [&taken](const int& v, weft::reduce<int, std::plus<>> to) {
                    taken = true;
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    to += v + 10;
                  },
                  x, total);
            });
          },
          in, weft::reduce(sum, std::plus<>{}));
      weft::fork([](int& v) { v = 100; }, weft::write(in));
      weft::fork([&](const int& v) { seen = v; }, weft::read(sum));
    });
    CHECK(seen == 11);
    CHECK(in.get() == 100);
  });
}

TEST_CASE("what thieves took contributes behind a task that has given the object a new value elsewhere") {
  weft::runtime rt({.workers = 4, .inlining = false});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> taken{false}, forked{false};
    long seen = 0;
    rt.run([&] {
      weft::shared<long> x(1L);
      weft::fork(
          [&](long) {
            expect([&] { return forked.load(); });
            std::this_thread::sleep_for(std::chrono::milliseconds(2));  // meanwhile all others are visited
          },
          weft::read(x));
      weft::fork([](long& v) { v = 100; }, weft::write(x));
      give_one(taken, [&](weft::thief& t) {
        t.fork(
            [&taken](weft::reduce<long, std::plus<>> to) {
              taken = true;
              to += 10;
            },
            weft::reduce(x, std::plus<>()));
      });
      weft::fork([&](long v) { seen = v; }, weft::read(x));
      forked = true;
    });
    CHECK(seen == 110);
  }
  CHECK(rt.counters().renames > 0);
}

TEST_CASE("a body that waits still gives work away") {
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> released{false};
    rt.run([&] {
      weft::fork([&] {
        std::atomic<bool> there{true};
        const weft::steal_function give([&](weft::thief& t) {
          if (there.exchange(false)) t.fork([&] { released = true; });
        });
        // A child that only the part lets end: the body waits for it.
        weft::fork([&] { expect([&] { return released.load(); }); });
        weft::sync();
      });
    });
    CHECK(released);
  });
}

TEST_CASE("a body that has forked nothing and waits still gives work away") {
  weft::runtime rt({.workers = 2});
  std::atomic<bool> busy{false}, release{false}, taken{false};
  std::jthread other([&] {
    rt.run([&] {
      busy = true;
      expect([&] { return release.load(); });
    });
  });
  expect([&] { return busy.load(); });
  rt.run([&] {
    std::atomic<bool> there{true};
    const weft::steal_function give([&](weft::thief& t) {
      if (there.exchange(false)) t.fork([&] { taken = true; });
    });
    rt.run([&] {
      release = true;  // the body waits for this run; only now there is a thief
      expect([&] { return taken.load(); });
    });
  });
  CHECK(taken);
}

TEST_CASE("sync does not wait for what thieves have taken, until the steal function has ended") {
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> taken{false}, go_on{false}, ended{false}, waited_early{true}, waited_late{false};
    rt.run([&] {
      weft::fork([&] {
        {
          std::atomic<bool> there{true};
          const weft::steal_function give([&](weft::thief& t) {
            if (there.exchange(false))
              t.fork([&] {
                taken = true;
                expect([&] { return go_on.load(); });
                ended = true;
              });
          });
          expect([&] { return taken.load(); });
          weft::sync();
          waited_early = ended.load();
          go_on = true;
        }
        weft::sync();
        waited_late = ended.load();
      });
    });
    CHECK_FALSE(waited_early);
    CHECK(waited_late);
  });
}

TEST_CASE("the first exception in reference order leaves the run") {
  struct thrown {
    std::string by;
  };
  const auto run = [](weft::runtime& rt, bool body, bool caught, bool part, bool later) {
    std::atomic<bool> taken{false};
    try {
      rt.run([&] {
        weft::fork([&] {
          const auto work = [&] {
            std::atomic<bool> there{true};
            const weft::steal_function give([&](weft::thief& t) {
              if (there.exchange(false))
                t.fork([&] {
                  taken = true;
                  if (part) throw thrown{"part"};
                });
            });
            expect([&] { return taken.load(); });
            if (body) throw thrown{"body"};
          };
          if (!caught) return work();
          try {
            work();
          } catch (const thrown&) {
          }
        });
        weft::fork([&] {
          if (later) throw thrown{"later"};
        });
      });
    } catch (const thrown& t) {
      return t.by;
    }
    return std::string("none");
  };
  on_each_with_thieves([&](weft::runtime& rt) {
    CHECK(run(rt, true, false, true, true) == "body");
    CHECK(run(rt, false, false, true, true) == "part");
    CHECK(run(rt, true, true, true, true) == "part");
    CHECK(run(rt, true, true, false, true) == "later");
    CHECK(run(rt, false, false, false, false) == "none");
  });
}

TEST_CASE("a steal function that throws fails the run, and is not called again") {
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<int> calls{0};
    std::atomic<bool> ran{false};
    const auto work = [&](bool forks) {
      rt.run([&] {
        weft::fork([&, before = calls.load()] {
          const weft::steal_function give([&](weft::thief& t) {
            if (forks) t.fork([&] { ran = true; });
            ++calls;
            throw std::runtime_error("nothing to give");
          });
          expect([&] { return calls > before; });
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
      });
    };
    CHECK_THROWS_WITH(work(false), "nothing to give");
    CHECK(calls == 1);
    CHECK_THROWS_WITH(work(true), "nothing to give");
    CHECK(calls == 2);
    CHECK(ran);
  });
}

TEST_CASE("an operation that throws when a part is folded") {
  struct fussy {
    std::string operator()(std::string a, const std::string& b) const {
      if (b == "part") throw std::runtime_error("not this one");
      return std::move(a) + b;
    }
  };
  on_each_with_thieves([](weft::runtime& rt) {
    weft::shared<std::string> out(std::string{});
    std::atomic<bool> taken{false};
    CHECK_THROWS_WITH(rt.run([&] {
      weft::fork(
          [&](weft::reduce<std::string, fussy> t) {
            give_one(taken, [&](weft::thief& by) {
              by.fork([&](weft::reduce<std::string, fussy> to) { to += "part", taken = true; }, t);
            });
          },
          weft::reduce(out, fussy{}));
    }),
                      "not this one");
  });
}

TEST_CASE("a run that is stopped ends in spite of parts, and frees what they hold") {
  on_each_with_thieves([](weft::runtime& rt) {
    const auto held = std::make_shared<int>(0);
    weft::shared<int> sum(0);
    std::atomic<bool> taken{false};
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork(
          [&](weft::reduce<int, std::plus<>> total) {
            give_one(taken, [&](weft::thief& t) {
              t.fork(
                  [&taken, held](weft::reduce<int, std::plus<>> to) {
                    to += 1;
                    taken = true;
                    while (!weft::this_task::stop_token().stop_requested()) std::this_thread::yield();
                  },
                  total);
              t.fork([held](weft::reduce<int, std::plus<>> to) { to += 1; }, total);
            });
            weft::this_task::request_stop();
          },
          weft::reduce(sum, std::plus<>{}));
    }),
                    weft::cancelled);
    CHECK(held.use_count() == 1);
  });
}

TEST_CASE("a steal function that gives nothing, and one that ends while thieves ask") {
  on_each_runtime([](weft::runtime& rt) {
    std::atomic<int> asked{0}, ran{0};
    constexpr int rounds = 20;
    const bool thieves = rt.workers() > 1;
    // Two steal functions, which live until `happened`: thieves ask the first one first.
    const auto give = [&](auto happened) {
      std::atomic<int> left{5};  // as many as come in time could be very many
      const weft::steal_function never([&](weft::thief&) { ++asked; });
      const weft::steal_function some([&](weft::thief& t) {
        if (left > 0) --left, t.fork([&] { ++ran; });
      });
      happened();
    };
    const auto until_more = [](const std::atomic<int>& n) {
      return [&n, before = n.load()] { expect([&] { return n > before; }); };
    };
    rt.run([&] {
      for (int i = 0; i < 5 * rounds; ++i) weft::fork([&] { give([] {}); });
      for (int i = 0; i < rounds && thieves; ++i) {
        weft::sync();  // nothing of the last round is to be counted here
        if (i % 2 == 0)
          give(until_more(asked));  // they end when the thief is between the two, or in the second
        else
          give(until_more(ran));
      }
    });
    if (thieves) {
      CHECK(asked >= rounds);  // before each part, too
      CHECK(ran >= rounds / 2);
      CHECK(ran <= asked);
    } else {
      CHECK(asked == 0);
      CHECK(ran == 0);
    }
  });
}

TEST_CASE("a spawned body gives work away, and what is taken fails as the body does") {
  struct thrown {};
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> taken{false};
    std::atomic<long> body_by{0}, part_by{0};
    std::string name;
    int seen = 0;
    rt.run([&] {
      weft::spawn([&] {
        weft::shared<int> sum(5);
        body_by = weft_test::kernel_thread();
        give_one(taken, [&](weft::thief& t) {
          t.fork(
              {.name = "part of the spawned"},
              [&](int v, weft::reduce<int, std::plus<>> to) {
                part_by = weft_test::kernel_thread();
                name = weft::this_task::name();
                to += v;
                taken = true;
              },
              10, weft::reduce(sum, std::plus<>()));
        });
        weft::fork([&](int v) { seen = v; }, weft::read(sum));
      });
    });
    CHECK(taken);
    CHECK(part_by != 0);
    CHECK(part_by != body_by);
    CHECK(name == "part of the spawned");
    CHECK(seen == 15);
  });
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> taken{false};
    CHECK_THROWS_AS(rt.run([&] {
      weft::spawn([&] {
        give_one(taken, [&](weft::thief& t) {
          t.fork([&] {
            taken = true;
            throw thrown();
          });
        });
      });
    }),
                    thrown);
    CHECK(taken);
  });
}

TEST_CASE("a body that waits at a mutex, a condition or a channel gives work away, which lets it go on") {
  on_each_with_thieves([](weft::runtime& rt) {
    for (const char* const at : {"a mutex", "a condition", "a channel"})
      for (const bool spawned : {true, false}) {
        INFO("waits at " << at << ", spawned " << spawned);
        weft::mutex door;
        weft::condition<int> ran(0);
        weft::channel<int> answers(1);
        std::atomic<bool> waits{false}, taken{false}, went_on{false}, held{false};
        bool too_early = false;
        const std::string kind = at;
        const auto body = [&] {
          std::atomic<bool> there{true};
          const weft::steal_function give([&](weft::thief& t) {
            if (waits && there.exchange(false))
              t.fork([&] {
                taken = true;
                ran.set(1);
                answers.push(1);
              });
          });
          if (kind == "a mutex") {
            const std::lock_guard hold(door);  // until the part has run, another one has it
            too_early = !taken;
          } else if (kind == "a condition") {
            ran.wait_equal(1);
          } else {
            answers.pop();
          }
          too_early = too_early || !taken;
          went_on = true;
        };
        rt.run([&] {
          // Sees that the body waits. It sleeps in between, so workers look for work again.
          weft::spawn([&] {
            const std::string words = "'waiter' waits for " + kind;
            expect([&] {
              weft::this_task::sleep_for(std::chrono::microseconds(100));
              if (rt.describe().find(words) != std::string::npos) waits = true;
              return went_on.load();
            });
          });
          weft::spawn([&] {
            const std::lock_guard hold(door);
            held = true;
            ran.wait_equal(1);
          });
          while (!held) weft::this_task::sleep_for(std::chrono::microseconds(10));
          if (spawned)
            weft::spawn({.name = "waiter"}, body);
          else
            weft::fork({.name = "waiter"}, body);
        });
        CHECK(waits);
        CHECK(taken);
        CHECK_FALSE(too_early);
        CHECK(went_on);
      }
  });
}

TEST_CASE("parts have names, priorities and move-only arguments") {
  on_each_with_thieves([](weft::runtime& rt) {
    std::atomic<bool> taken{false};
    std::string name;
    bool refused = false;
    int value = 0;
    rt.run([&] {
      weft::fork([&] {
        give_one(taken, [&](weft::thief& t) {
          t.fork(
              {.name = "part", .priority = 2},
              [&](std::unique_ptr<int> v) {
                name = weft::this_task::name();
                value = *v;
                taken = true;
              },
              std::make_unique<int>(7));
          try {
            t.fork({.event = true}, [] {});
          } catch (const weft::error&) {
            refused = true;
          }
        });
      });
    });
    CHECK(name == "part");
    CHECK(value == 7);
    CHECK(refused);
  });
}

TEST_CASE("steal functions outside tasks, and tasks forked past the thief") {
  const auto last_words = [](auto&& f) {
    const auto child = weft_test::run_in_child(f);
    CHECK(child.aborted());
    return child.output;
  };
  CHECK_THAT(last_words([] { const weft::steal_function give([](weft::thief&) {}); }),
             contains("weft: a steal_function was made outside a task"));
  CHECK_THAT(last_words([] {
               weft::runtime rt({.workers = 2});
               rt.run([] {
                 std::atomic<bool> taken{false};
                 give_one(taken, [](weft::thief&) { weft::fork([] {}); });
               });
             }),
             contains("weft: fork() was called outside a task"));
  const std::string no_wait = ", and would wait; it is called by a worker, which must not";
  CHECK_THAT(last_words([] {
               weft::runtime rt({.workers = 2});
               rt.run([&] {
                 std::atomic<bool> taken{false};
                 give_one(taken, [&](weft::thief&) { rt.run([] {}); });
               });
             }),
             contains("weft: a steal function calls run()" + no_wait));
  CHECK_THAT(last_words([] {
               weft::runtime rt({.workers = 2});
               weft::mutex locked;
               rt.run([&] {
                 const std::lock_guard hold(locked);
                 std::atomic<bool> taken{false};
                 give_one(taken, [&](weft::thief&) { locked.lock(); });
               });
             }),
             contains("weft: a steal function locks a weft::mutex" + no_wait));
  CHECK_THAT(last_words([] {
               weft::runtime rt({.workers = 2});
               rt.run([&] {
                 std::atomic<bool> taken{false};
                 give_one(taken, [&](weft::thief&) { weft::this_task::blocking([] {}); });
               });
             }),
             contains("weft: a steal function calls this_task::blocking()" + no_wait));
}

TEST_CASE("a steal function may use what does not have to wait") {
  weft::runtime rt({.workers = 2});
  weft::mutex free;
  std::atomic<bool> taken{false};
  rt.run([&] {
    give_one(taken, [&](weft::thief& t) {
      const std::lock_guard hold(free);
      t.fork([&taken] { taken = true; });
    });
  });
  CHECK(taken);
}
