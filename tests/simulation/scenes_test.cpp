// SPDX-License-Identifier: BSL-1.0
// Small programs, each around one protocol of the scheduler, in many simulated worlds.
#include "scene.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

using simulation::dawdle;
using simulation::differs;
using simulation::play;
using simulation::step;
using weft::base::atomic;
using weft::base::thread;

namespace {

void fib(long n, weft::write<long> r) {
  if (n < 2) {
    r = n;
    return;
  }
  weft::shared<long> a, b;
  weft::fork(fib, n - 1, a);
  weft::fork(fib, n - 2, b);
  weft::fork([](long x, long y, long& sum) { sum = x + y; }, weft::read(a), weft::read(b), r);
}

}  // namespace

TEST_CASE("scene: a tree whose objects end before its tasks") {
  const auto seen = play([](weft::runtime& rt) {
    weft::shared<long> r;
    rt.run(fib, 7L, r);
    return differs("fib(7)", r.get(), 13);
  });
  CHECK(seen.steals > 0);
  CHECK(seen.parkings > 0);
}

TEST_CASE("scene: bodies that wait go on where there is time") {
  const auto seen = play([](weft::runtime& rt) {
    const std::function<long(long)> sum = [&sum](long n) -> long {
      if (n == 0) return 1;
      std::array<long, 3> part{};
      for (std::size_t i = 0; i < part.size(); ++i)
        weft::fork([&, i] {
          dawdle(3);
          part[i] = sum(n - 1);
        });
      weft::sync();
      return part[0] + part[1] + part[2];
    };
    return differs("the number of leaves", rt.run([&] { return sum(3); }), 27);
  });
  CHECK(seen.steals > 0);
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: chains in one large frame keep their order") {
  const auto seen = play([](weft::runtime& rt) {
    std::array<weft::shared<long>, 4> cells{weft::shared<long>(1L), weft::shared<long>(1L),
                                            weft::shared<long>(1L), weft::shared<long>(1L)};
    std::array<long, 4> want{1, 1, 1, 1};
    rt.run([&] {
      for (std::size_t i = 0; i < 32; ++i) {
        const long k = static_cast<long>(i);
        weft::fork(
            [k](long& x, long y) {
              dawdle(2);
              x = step(x, k + y);
            },
            weft::update(cells[i % 4]),
            weft::read(cells[(i * 3 + 1) % 4 == i % 4 ? (i + 1) % 4 : (i * 3 + 1) % 4]));
      }
    });
    for (std::size_t i = 0; i < 32; ++i)
      want[i % 4] = step(
          want[i % 4], static_cast<long>(i) + want[(i * 3 + 1) % 4 == i % 4 ? (i + 1) % 4 : (i * 3 + 1) % 4]);
    for (std::size_t i = 0; i < 4; ++i)
      if (cells[i].get() != want[i]) return differs("a cell", cells[i].get(), want[i]);
    return std::string();
  });
  CHECK(seen.promotions > 0);
}

TEST_CASE("scene: tasks that make each other ready, one or two at a time, keep their order") {
  constexpr std::size_t n = 6;
  std::array<long, (n + 1) * (n + 1)> want;
  want.fill(1);
  const auto at = [](std::size_t i, std::size_t j) { return i * (n + 1) + j; };
  for (std::size_t i = 1; i <= n; ++i)
    for (std::size_t j = 1; j <= n; ++j) want[at(i, j)] = step(want[at(i - 1, j)], want[at(i, j - 1)]);
  const auto seen = play([&](weft::runtime& rt) {
    std::array<long, (n + 1) * (n + 1)> cells;
    cells.fill(1);
    long sum = 0, wanted = 0;
    rt.run([&] {
      for (std::size_t i = 1; i <= n; ++i)
        for (std::size_t j = 1; j <= n; ++j)
          weft::fork(
              [](long up, long left, long& own) {
                dawdle(3);
                own = step(up, left);
              },
              weft::read(weft::borrow(cells[at(i - 1, j)])), weft::read(weft::borrow(cells[at(i, j - 1)])),
              weft::update(weft::borrow(cells[at(i, j)])));
      weft::fork([](const long& last, long& s) { s += last; }, weft::read(weft::borrow(cells[at(n, n)])),
                 weft::update(weft::borrow(sum)));
    });
    wanted = want[at(n, n)];
    for (std::size_t i = 0; i < want.size(); ++i)
      if (cells[i] != want[i]) return differs("a cell", cells[i], want[i]);
    return differs("the sum", sum, wanted);
  });
  CHECK(seen.promotions > 0);
}

TEST_CASE("scene: a failure among tasks that make each other ready drops what comes behind it") {
  play([&](weft::runtime& rt) {
    std::array<long, 24> ran{};
    std::array<long, 4> x{};
    bool thrown = false;
    try {
      rt.run([&] {
        for (std::size_t i = 0; i < ran.size(); ++i)
          weft::fork(
              [i, &ran](long& own, const long&) {
                dawdle(2);
                if (i == 9) throw 9;
                ran[i] = 1;
                ++own;
              },
              weft::update(weft::borrow(x[i % 4])), weft::read(weft::borrow(x[(i + 1) % 4])));
      });
    } catch (int e) {
      thrown = e == 9;
    }
    if (!thrown) return std::string("the exception was lost");
    for (std::size_t i = 0; i < 9; ++i)
      if (ran[i] == 0) return "task " + std::to_string(i) + " did not run";
    // Those that depend on the one that failed.
    for (std::size_t i = 12; i < ran.size(); ++i)
      if (ran[i] != 0) return "task " + std::to_string(i) + " ran behind a failure that it depends on";
    return std::string();
  });
}

TEST_CASE("scene: no task sees a value that another one has not finished") {
  play([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    bool inside = false, met = false;
    rt.run([&] {
      for (int i = 0; i < 12; ++i) {
        weft::fork(
            [&](long& v) {
              met |= inside;
              inside = true;
              dawdle(5);
              ++v;
              inside = false;
            },
            weft::update(x));
        weft::fork([&](const long&) { met |= inside; }, weft::read(x));
      }
    });
    return met ? "two tasks were at the object" : differs("the count", x.get(), 12);
  });
}

TEST_CASE("scene: writers do not wait for readers, and readers see their own value") {
  const auto seen = play([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    std::array<long, 24> got{};
    rt.run([&] {
      for (long i = 0; i < 12; ++i) {
        weft::fork(
            [i](long& v) {
              dawdle(3);
              v = i * i;
            },
            weft::write(x));
        for (std::size_t k = 0; k < 2; ++k)
          weft::fork(
              [&, i, k](const long& v) {
                dawdle(static_cast<unsigned>(4 * k));
                got[static_cast<std::size_t>(2 * i) + k] = v;
              },
              weft::read(x));
      }
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
      const long want = static_cast<long>(i / 2) * static_cast<long>(i / 2);
      if (got[i] != want) return differs("what a reader saw", got[i], want);
    }
    return differs("the last value", x.get(), 121);
  });
  CHECK(seen.renames > 0);
}

TEST_CASE("scene: all tasks visited end while somebody visits more, and the values of renamed objects stay") {
  const auto scene = [](weft::runtime& rt) {
    weft::shared<long> x(0L);
    std::array<long, 100> got{};
    rt.run([&] {
      for (std::size_t i = 0; i < got.size(); ++i) {
        weft::fork([i](long& v) { v = static_cast<long>(i); }, weft::write(x));
        weft::fork([](long& v) { v += 100; }, weft::update(x));
        weft::fork([&got, i](const std::vector<weft::read<long>>& all) { got[i] = *all[0]; },
                   std::vector<weft::read<long>>{x});  // a list: visited with the lock closed
      }
    });
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != 100 + static_cast<long>(i))
        return differs("what a reader saw", got[i], 100 + static_cast<long>(i));
    return differs("the last value", x.get(), 199);
  };
  const auto seen = play(scene, 1u << 14, 200'000'000, 8);
  CHECK(seen.renames > 0);
}

TEST_CASE("scene: contributions are folded in reference order") {
  const auto seen = play([](weft::runtime& rt) {
    struct append {
      std::string operator()(std::string a, const std::string& b) const { return a + b; }
    };
    weft::shared<std::string> text(std::string("<"));
    rt.run([&] {
      for (int i = 0; i < 14; ++i)
        weft::fork(
            [i](auto t) {
              dawdle(static_cast<unsigned>(i % 4));
              t += std::string(1, static_cast<char>('a' + i));
            },
            weft::reduce(text, append{}));
      weft::fork([](std::string& s) { s += '>'; }, weft::update(text));
    });
    return text.get() == "<abcdefghijklmn>" ? "" : "the text is " + text.get();
  });
  CHECK(seen.folds > 0);
}

TEST_CASE("scene: commuting tasks exclude each other") {
  play([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    bool inside = false, met = false;
    rt.run([&] {
      for (int i = 0; i < 12; ++i)
        weft::fork(
            [&](long& v) {
              met |= inside;
              inside = true;
              const long before = v;
              dawdle(4);
              v = before + 1;
              inside = false;
            },
            weft::commute(x));
    });
    return met ? "two tasks were at the object" : differs("the count", x.get(), 12);
  });
}

TEST_CASE("scene: parts of an array are ordered where they overlap") {
  play([](weft::runtime& rt) {
    weft::shared_array<long> a(12);
    std::array<long, 12> want{};
    rt.run([&] {
      weft::fork(
          [](std::span<long> all) {
            for (long& v : all) v = 0;
          },
          weft::write(a.slice(0, 12)));
      for (std::size_t i = 0; i < 20; ++i) {
        const std::size_t first = i * 5 % 10, count = 1 + i * 7 % 3;
        weft::fork(
            [i](std::span<long> part) {
              dawdle(2);
              for (long& v : part) v = step(v, static_cast<long>(i));
            },
            weft::update(a.slice(first, std::min<std::size_t>(count, 12 - first))));
      }
    });
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t first = i * 5 % 10, count = std::min<std::size_t>(1 + i * 7 % 3, 12 - first);
      for (std::size_t k = first; k < first + count; ++k) want[k] = step(want[k], static_cast<long>(i));
    }
    for (std::size_t k = 0; k < 12; ++k)
      if (a.get()[k] != want[k]) return differs("an element", a.get()[k], want[k]);
    return std::string();
  });
}

TEST_CASE("scene: children of weak tasks wait for each other by what they touch") {
  play([](weft::runtime& rt) {
    weft::shared<long> a(1L), b(1L);
    rt.run([&] {
      for (long k = 0; k < 6; ++k)
        weft::fork(
            [k](weft::weak_update<long> x, weft::weak_update<long> y) {
              weft::fork([k](long& v) { v = step(v, k); }, weft::update(x));
              weft::fork(
                  [k](long& v, long w) {
                    dawdle(3);
                    v = step(v, k + w);
                  },
                  weft::update(y), weft::read(x));
            },
            weft::weak_update(a), weft::weak_update(b));
    });
    long x = 1, y = 1;
    for (long k = 0; k < 6; ++k) {
      x = step(x, k);
      y = step(y, k + x);
    }
    return a.get() != x ? differs("a", a.get(), x) : differs("b", b.get(), y);
  });
}

TEST_CASE("scene: the first exception in reference order wins, and nothing after it counts") {
  const auto seen = play([](weft::runtime& rt) {
    weft::shared<long> x(0L);
    long caught = 0;
    try {
      rt.run([&] {
        for (long i = 1; i <= 10; ++i) {
          weft::fork([i](long& v) { v = i; }, weft::update(x));
          weft::fork([i] {
            dawdle(i == 7 ? 0 : 10);
            if (i == 4 || i == 7) throw i;
          });
        }
      });
    } catch (long i) {
      caught = i;
    }
    return differs("the exception", caught, 4);
  });
  CHECK(seen.dropped > 0);
}

TEST_CASE("scene: exceptions survive a switch while they are handled") {
  const auto seen = play([](weft::runtime& rt) {
    std::array<long, 3> got{};
    rt.run([&] {
      for (std::size_t i = 0; i < got.size(); ++i)
        weft::fork([&got, i] {
          try {
            throw static_cast<long>(i);
          } catch (long) {
            for (int k = 0; k < 3; ++k) weft::fork([] { dawdle(6); });
            weft::sync();
            try {
              throw;
            } catch (long again) {
              got[i] = again + 1;
            }
          }
        });
    });
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<long>(i) + 1)
        return differs("what was rethrown", got[i], static_cast<long>(i) + 1);
    return std::string();
  });
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a task waits for a run of its own, and of another runtime") {
  play([](weft::runtime& rt) {
    weft::runtime other({.workers = 2});
    std::array<long, 4> got{};
    rt.run([&] {
      for (std::size_t i = 0; i < got.size(); ++i)
        weft::fork([&, i] {
          weft::shared<long> r;
          (i % 2 == 0 ? rt : other).run(fib, 4L, r);
          got[i] = r.get();
        });
    });
    for (const long g : got)
      if (g != 3) return differs("fib(4)", g, 3);
    return std::string();
  });
}

TEST_CASE("scene: events from outside end tasks") {
  play([](weft::runtime& rt) {
    weft::shared<long> x(1L);
    std::array<std::optional<weft::completion>, 3> held;
    atomic<unsigned> ready{0};
    thread outside([&] {
      for (unsigned i = 0; i < held.size(); ++i) {
        while (ready.load() <= i) weft::base::yield();
        dawdle(20);
        held[i]->complete();
      }
    });
    rt.run([&] {
      for (unsigned i = 0; i < held.size(); ++i) {
        weft::fork(
            {.event = true},
            [&, i](long& v) {
              v = step(v, i);
              held[i].emplace(weft::this_task::hold());
              ready.store(i + 1);
            },
            weft::update(x));
        weft::fork([&, i](long& v) { v = step(v, 10 + i); }, weft::update(x));
      }
    });
    outside.join();
    long want = 1;
    for (long i = 0; i < 3; ++i) want = step(step(want, i), 10 + i);
    return differs("the value", x.get(), want);
  });
}

TEST_CASE("scene: callers come and go while workers sleep") {
  const auto seen = play([](weft::runtime& rt) {
    std::array<long, 3> got{};
    std::array<thread, 3> callers;
    for (std::size_t i = 0; i < callers.size(); ++i)
      callers[i] = thread([&rt, &got, i] {
        for (int k = 0; k < 4; ++k) {
          dawdle(static_cast<unsigned>(50 * i));
          got[i] += rt.run([] {
            long n = 0;
            weft::fork([&n] { n = 1; });
            weft::sync();
            return n;
          });
        }
      });
    for (thread& t : callers) t.join();
    for (const long g : got)
      if (g != 4) return differs("the number of runs", g, 4);
    return std::string();
  });
  CHECK(seen.sleeps > 0);
}

TEST_CASE("scene: a run that is stopped ends, and the next one is whole") {
  const auto seen = play([](weft::runtime& rt) {
    std::stop_source source;
    long ran = 0;
    bool stopped = false;
    try {
      rt.run({.stop = source.get_token()}, [&] {
        for (int i = 0; i < 20; ++i)
          weft::fork([&, i] {
            dawdle(3);
            ++ran;
            if (i == 9) source.request_stop();
          });
      });
    } catch (const weft::cancelled&) {
      stopped = true;
    }
    if (!stopped) return std::string("the run was not stopped");
    if (ran == 0 || ran > 20) return differs("the number of tasks", ran, 10);
    return differs("the next run", rt.run([] { return 5L; }), 5);
  });
  CHECK(seen.dropped > 0);
}

TEST_CASE("scene: at the cap, fork runs what is pending") {
  const auto seen = play(
      [](weft::runtime& rt) {
        weft::shared<long> x(1L), y(1L);
        rt.run([&] {
          for (long i = 0; i < 30; ++i)
            weft::fork([i](long& v) { v = step(v, i); }, weft::update(i % 3 == 0 ? x : y));
        });
        long a = 1, b = 1;
        for (long i = 0; i < 30; ++i) (i % 3 == 0 ? a : b) = step(i % 3 == 0 ? a : b, i);
        return x.get() != a ? differs("x", x.get(), a) : differs("y", y.get(), b);
      },
      4);
  CHECK(seen.capped > 0);
}

TEST_CASE("scene: iterations of a recorded graph follow each other") {
  const auto seen = play([](weft::runtime& rt) {
    std::array<long, 8> row{1, 1, 1, 1, 1, 1, 1, 1}, want = row;
    rt.run([&] {
      weft::recorded iteration;
      for (long k = 0; k < 6; ++k)
        iteration([&] {
          for (std::size_t i = 1; i < row.size(); ++i)
            weft::fork([k](long left, long& v) { v = step(v, left + k); },
                       weft::read(weft::borrow(row[i - 1])), weft::update(weft::borrow(row[i])));
        });
    });
    for (long k = 0; k < 6; ++k)
      for (std::size_t i = 1; i < want.size(); ++i) want[i] = step(want[i], want[i - 1] + k);
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i] != want[i]) return differs("a cell", row[i], want[i]);
    return std::string();
  });
  CHECK(seen.replayed > 0);
}

TEST_CASE("scene: a replayed writer waits for every reader") {
  const auto seen = play([](weft::runtime& rt) {
    long x = 1, want = 1;
    std::array<long, 3> read{}, wanted{};
    rt.run([&] {
      weft::recorded iteration;
      for (long k = 0; k < 6; ++k)
        iteration([&] {
          weft::fork([k](long& v) { v = step(v, k); }, weft::update(weft::borrow(x)));
          for (long& r : read)
            weft::fork(
                [](const long& v, long& mine) {
                  dawdle(4);
                  mine = step(mine, v);
                },
                weft::read(weft::borrow(x)), weft::update(weft::borrow(r)));
        });
    });
    for (long k = 0; k < 6; ++k) {
      want = step(want, k);
      for (long& w : wanted) w = step(w, want);
    }
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i] != wanted[i]) return differs("what a reader has seen", read[i], wanted[i]);
    return differs("the value", x, want);
  });
  CHECK(seen.replayed > 0);
}

TEST_CASE("scene: urgent tasks and local ones do what the others do") {
  play([](weft::runtime& rt) {
    weft::shared<long> x(1L);
    long locals = 0;  // tasks of one worker
    rt.run([&] {
      for (int i = 0; i < 16; ++i) {
        weft::fork({.priority = i % 3}, [i](long& v) { v = step(v, i); }, weft::update(x));
        weft::fork({.local = true}, [&] {
          const long before = locals;
          dawdle(3);
          locals = before + 1;
        });
      }
    });
    long want = 1;
    for (int i = 0; i < 16; ++i) want = step(want, i);
    return x.get() != want ? differs("the value", x.get(), want) : differs("the local tasks", locals, 16);
  });
}

TEST_CASE("scene: turns of an overlay are those of the serial program") {
  play([](weft::runtime& rt) {
    std::array<weft::orwl::location<long>, 6> cell;
    std::array<long, 6> want{};
    weft::orwl::overlay row;
    for (std::size_t i = 0; i < cell.size(); ++i) {
      const std::size_t west = (i + 5) % 6, east = (i + 1) % 6;
      row.task(
          [](long& mine, const long& w, const long& e) {
            const long before = mine;
            dawdle(2);
            mine = step(before, w + 7 * e + 1);
          },
          weft::orwl::write(cell[i]), weft::orwl::read(cell[west]), weft::orwl::read(cell[east]));
    }
    row.schedule();
    row.run(rt, 4);
    for (int k = 0; k < 4; ++k)
      for (std::size_t i = 0; i < want.size(); ++i)
        want[i] = step(want[i], want[(i + 5) % 6] + 7 * want[(i + 1) % 6] + 1);
    for (std::size_t i = 0; i < want.size(); ++i)
      if (cell[i].get() != want[i]) return differs("a cell", cell[i].get(), want[i]);
    return std::string();
  });
}

TEST_CASE("scene: bodies hand an ordered lock to each other") {
  const auto seen = play([](weft::runtime& rt) {
    weft::orwl::location<long> l(1L);
    std::array<weft::orwl::iterative_handle<long>, 3> h;
    for (std::size_t i = h.size(); i-- > 0;) h[i].request_write(l);  // against the order of the forks
    rt.run([&] {
      for (std::size_t i = 0; i < h.size(); ++i)
        weft::fork([&, i] {
          for (int k = 0; k < 3; ++k) {
            weft::orwl::section turn(h[i]);
            const long before = turn.read();
            dawdle(2);
            turn.write() = step(before, static_cast<long>(i));
          }
          h[i].cancel();
        });
    });
    long want = 1;
    for (int k = 0; k < 3; ++k)
      for (long i = 2; i >= 0; --i) want = step(want, i);
    return differs("the value", l.get(), want);
  });
  CHECK(seen.suspensions > 0);
}

TEST_CASE("scene: a run is stopped while bodies wait for a lock") {
  play([](weft::runtime& rt) {
    weft::orwl::location<long> l(0L);
    std::array<weft::orwl::handle<long>, 3> h;
    atomic<int> ended{0};
    std::stop_source source;
    for (auto& one : h) one.request_write(l);  // the first one is granted, and never released
    bool cancelled = false;
    try {
      rt.run({.stop = source.get_token()}, [&] {
        for (std::size_t i = 1; i < h.size(); ++i)
          weft::fork([&, i] {
            try {
              h[i].acquire();
            } catch (const weft::cancelled&) {
              ended.fetch_add(1, weft::base::memory_order_relaxed);
              throw;
            }
          });
        weft::fork([&] {
          dawdle(3);
          source.request_stop();
        });
      });
    } catch (const weft::cancelled&) {
      cancelled = true;
    }
    h[0].release();
    if (!cancelled) return std::string("nothing was cancelled");
    for (auto& one : h) one.cancel();
    h[0].request_write(l);
    return h[0].test() ? std::string() : std::string("somebody still has the lock");
  });
}

TEST_CASE("scene: locks exclude") {
  play([](weft::runtime&) {
    weft::base::spin_lock spin;
    weft::base::mutex lock;
    long a = 0, b = 0;
    std::array<thread, 3> all;
    for (thread& t : all)
      t = thread([&] {
        for (int i = 0; i < 5; ++i) {
          spin.lock();
          const long before = a;
          dawdle(3);
          a = before + 1;
          spin.unlock();
          lock.lock();
          const long then = b;
          dawdle(2);
          b = then + 1;
          lock.unlock();
        }
      });
    for (thread& t : all) t.join();
    return a != 15 ? differs("under the spin lock", a, 15) : differs("under the mutex", b, 15);
  });
}

TEST_CASE("scene: somebody describes the runtime meanwhile") {
  std::size_t length = 0;
  const auto seen = play([&](weft::runtime& rt) {
    std::array<weft::shared<long>, 2> cells{weft::shared<long>(1L), weft::shared<long>(1L)};
    weft::shared<long> r;
    atomic<bool> end{false};
    thread observer([&] {
      while (!end.load()) length += rt.describe().size();
    });
    rt.run([&] {
      weft::fork(fib, 6L, r);
      for (long i = 0; i < 8; ++i)
        weft::fork({.name = "link"}, [i](long& v) { v = step(v, i); }, weft::update(cells[i % 2]));
      rt.run([&] { length += rt.describe().size(); });
    });
    end.store(true);
    observer.join();
    long want = 1;
    for (long i = 0; i < 8; i += 2) want = step(want, i);
    const std::string wrong = differs("a cell", cells[0].get(), want);
    return wrong.empty() ? differs("fib(6)", r.get(), 8) : wrong;
  });
  CHECK(length > 0);
  CHECK(seen.steals > 0);
  CHECK(seen.parkings + seen.suspensions > 0);
}

namespace {

/// Whether firsts come in ascending order: -1 once they do not.
struct ascends {
  long operator()(long before, long next) const { return before >= 0 && before <= next ? next : -1; }
};

/// Goes through [first, last) and gives half of what is left away whenever a thief asks.
struct shared_loop {
  std::array<atomic<int>, 24>& times;

  void operator()(int first, int last, weft::reduce<long, ascends> out) const {
    weft::interval<int> left(first, last);
    const weft::steal_function give([&](weft::thief& t) {
      if (const auto part = left.take_back_half(1)) t.fork(*this, part->first, part->last, out);
    });
    while (const auto part = left.take_front(2))
      for (int i = part->first; i < part->last; ++i) {
        dawdle(2);
        times[static_cast<std::size_t>(i)].fetch_add(1);
      }
    out += first;
  }
};

}  // namespace

TEST_CASE("scene: a body and its thieves go through an interval once") {
  const auto seen = play([](weft::runtime& rt) {
    std::array<atomic<int>, 24> times{};
    weft::shared<long> out(0L);
    rt.run([&] {
      weft::fork(shared_loop{times}, 0, 24, weft::reduce(out, ascends{}));
      weft::sync();
    });
    for (const auto& n : times)
      if (n.load() != 1) return differs("an integer was taken that often, and", n.load(), 1);
    return out.get() < 0 ? std::string("parts are folded out of order") : std::string();
  });
  CHECK(seen.steals > 0);
}
