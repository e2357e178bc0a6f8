// SPDX-License-Identifier: BSL-1.0
// Overlays: the values of the serial program, fair turns, ends, failures, and what is refused.
#include "flow/runtimes.hpp"
#include "support/environment.hpp"

#include <weft/orwl.hpp>
#include <weft/threads.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft::orwl::location;
using weft::orwl::overlay;
using weft::orwl::read;
using weft::orwl::write;
using weft_test::contains;

namespace {

template <class E, class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing";
}

/// A row of cells, each of which is computed from its neighbours, the western one first.
class row {
 public:
  explicit row(int n) : serial_(static_cast<std::size_t>(n)), turns(static_cast<std::size_t>(n)) {
    for (int i = 0; i < n; ++i) cells.emplace_back(serial_[static_cast<std::size_t>(i)] = i * i % 17 + 1);
  }
  static void step(long& mine, long west, long east) { mine = (3 * west + 5 * mine + 7 * east) % 10'007; }
  /// Declares a task for each cell but the two at the ends.
  void declare(overlay& o) {
    for (std::size_t i = 1; i + 1 < cells.size(); ++i)
      o.task(
          {.name = "cell"},
          [this, i](long& mine, const long& west, const long& east) {
            step(mine, west, east);
            const int k = ++turns[i];
            if (i > 1 && std::abs(k - turns[i - 1].load()) > 1) fair = false;
          },
          write(cells[i]), read(cells[i - 1]), read(cells[i + 1]));
  }
  void expect(int sweeps) {
    for (int s = 0; s < sweeps; ++s)
      for (std::size_t i = 1; i + 1 < serial_.size(); ++i) step(serial_[i], serial_[i - 1], serial_[i + 1]);
  }
  bool as_expected() const {
    for (std::size_t i = 0; i < serial_.size(); ++i)
      if (cells[i].get() != serial_[i]) return false;
    return true;
  }

  std::deque<location<long>> cells;

 private:
  std::vector<long> serial_;

 public:
  std::vector<std::atomic<int>> turns;
  std::atomic<bool> fair{true};
};

}  // namespace

TEST_CASE("an overlay computes what the serial program computes, in fair turns") {
  for (const unsigned workers : {1u, 2u, 3u, 8u}) {
    weft::runtime rt({.workers = workers});
    for (const int n : {3, 4, 5, 30})
      for (const int sweeps : {0, 1, 2, 7, 40}) {
        INFO("workers " << workers << ", cells " << n << ", sweeps " << sweeps);
        row r(n);
        overlay o;
        r.declare(o);
        o.schedule();
        const auto count = static_cast<std::uint64_t>(sweeps);
        CHECK(o.run(rt, count) == count);
        r.expect(sweeps);
        CHECK(r.as_expected());
        CHECK(o.run(rt, 3) == 3);  // goes on where it was
        r.expect(3);
        CHECK(r.as_expected());
        CHECK(r.fair);
        for (std::size_t i = 1; i + 1 < r.turns.size(); ++i) CHECK(r.turns[i] == sweeps + 3);
      }
  }
}

TEST_CASE("places decide who posts first, and ranks who stands first at one location") {
  weft::runtime rt({.workers = 2});
  location<std::string> text;
  overlay o;
  for (const char c : {'a', 'b', 'c'}) o.task([c](std::string& s) { s += c; }, write(text));
  o.schedule();
  o.run(rt, 2);
  CHECK(text.get() == "abcabc");
  text.get().clear();
  o.schedule(std::vector<int>{2, 1, 1});
  o.run(rt, 2);
  CHECK(text.get() == "bcabca");

  text.get().clear();
  overlay ranked;
  ranked.task([](std::string& s) { s += 'x'; }, write(text, 5));
  ranked.task([](std::string& s) { s += 'y'; }, write(text, -5));
  ranked.schedule();
  ranked.run(rt, 2);
  CHECK(text.get() == "yxyx");
}

TEST_CASE("readers at both ends of a queue's round") {
  for (const unsigned workers : {1u, 4u}) {
    weft::runtime rt({.workers = workers});
    location<int> l(0);
    std::vector<int> early, late;
    overlay o;
    o.task([&](const int& v) { early.push_back(v); }, read(l));
    o.task([](int& v) { ++v; }, write(l));
    o.task([&](const int& v) { late.push_back(v); }, read(l));
    o.schedule();
    o.run(rt, 5);
    CHECK(early == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(late == std::vector<int>{1, 2, 3, 4, 5});
  }
}

TEST_CASE("what a turn throws counts, and not what that has cancelled") {
  weft::runtime rt({.workers = 2});
  location<int> x(0), y(0);
  weft::semaphore never(0);
  std::atomic<bool> left{false};
  overlay o;
  o.task(
      [&](int&) {
        try {
          never.acquire();
        } catch (const weft::cancelled&) {
          left = true;
          throw;
        }
      },
      write(x));
  o.task(
      [&](int&) {
        weft::spawn([] { throw std::runtime_error("planned"); });
        weft_test::wait_until([&] { return left.load(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // most likely the other has told it
      },
      write(y));
  o.schedule();
  CHECK(refusal<std::runtime_error>([&] { o.run(rt, 1); }) == "planned");
}

TEST_CASE("tasks that share nothing, or only read") {
  weft::runtime rt({.workers = 3});
  location<int> constant(4);
  std::deque<location<int>> own(5);
  overlay o;
  for (auto& l : own) o.task([](int& v, const int& c) { v += c; }, write(l), read(constant));
  o.schedule();
  CHECK(o.run(rt, 10) == 10);
  for (const auto& l : own) CHECK(l.get() == 40);
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.run_until_stopped(rt); }),
             contains("share no location"));
  {
    overlay stops;
    stops.task([](int& v) { ++v; }, write(own[0]));
    stops.task(
        [](weft::orwl::turn& t, int& v) {
          ++v;
          t.stop();
        },
        write(own[1]));
    stops.schedule();
    CHECK_THAT(refusal<weft::orwl::usage_error>([&] { stops.run(rt, 1000); }),
               contains("cannot be stopped by a turn"));
  }
  overlay none;
  none.schedule();
  CHECK(none.run(rt, 10) == 0);
}

TEST_CASE("an order that could deadlock is refused with the cycle by name") {
  location<int> a(0), b(0);
  a.named("left");
  overlay bad;
  bad.task({.name = "first"}, [](int&, int&) {}, write(a, 0), write(b, 1));
  bad.task({.name = "second"}, [](int&, int&) {}, write(a, 1), write(b, 0));
  const std::string text = refusal<weft::orwl::cyclic_overlay>([&] { bad.schedule(); });
  CHECK_THAT(text, contains("task 0 ('first') stands before task 1 ('second') at location 0 ('left')"));
  CHECK_THAT(text, contains("task 1 ('second') stands before task 0 ('first') at location 1"));
  weft::runtime rt({.workers = 1});
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { bad.run(rt, 1); }), contains("needs schedule()"));

  // Of a long cycle the first tasks are named.
  std::deque<location<int>> ring(20);
  overlay round;
  for (std::size_t i = 0; i < ring.size(); ++i)
    round.task([](int&, int&) {}, write(ring[i], 1), write(ring[(i + 1) % ring.size()], 0));
  const std::string long_text = refusal<weft::orwl::cyclic_overlay>([&] { round.schedule(); });
  CHECK_THAT(long_text, contains("and so on, 20 tasks in all"));
  std::size_t named = 0;
  for (std::size_t at = 0; (at = long_text.find(" stands before ", at)) != std::string::npos; ++at) ++named;
  CHECK(named == 16);

  // A wavefront of 4 x 4 blocks is accepted as it is written, and not with two first requests swapped.
  for (const bool swapped : {false, true}) {
    std::deque<location<int>> block(16);
    overlay o;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        const int late = swapped && i == 2 && j == 2 ? 1 : 0;  // its own block, behind its eastern reader
        o.task([](int&, const int&, const int&, const int&, const int&) {}, write(block[4 * i + j], late),
               read(block[4 * i + (j + 3) % 4]), read(block[4 * ((i + 3) % 4) + j]),
               read(block[4 * i + (j + 1) % 4]), read(block[4 * ((i + 1) % 4) + j]));
      }
    if (swapped)
      CHECK_THROWS_AS(o.schedule(), weft::orwl::cyclic_overlay);
    else
      o.schedule();
  }
}

TEST_CASE("overlays that are used in a wrong way are refused") {
  weft::runtime rt({.workers = 2});
  location<int> l(0), other(0);
  l.named("table");
  overlay o;
  CHECK_THAT(refusal<weft::orwl::usage_error>(
                 [&] { o.task({.name = "twice"}, [](int&, const int&) {}, write(l), read(l)); }),
             contains("'twice' names the same location twice"));
  o.task([](int& v) { ++v; }, write(l));
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.run(rt, 1); }), contains("needs schedule()"));
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.schedule(std::vector<int>{1, 2}); }),
             contains("one place for each task"));
  o.schedule();
  {
    weft::orwl::handle<int> h;
    h.request_read(l);
    CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.run(rt, 1); }),
               contains("'table' is used by handles"));
  }
  CHECK(o.run(rt, 1) == 1);
  overlay nameless;
  nameless.task([](int&) {}, write(other));
  nameless.schedule();
  {
    weft::orwl::handle<int> h;
    h.request_write(other);
    CHECK_THAT(refusal<weft::orwl::usage_error>([&] { nameless.run(rt, 1); }),
               contains("the ORWL location 'location' is used by handles"));
  }

  // A body that runs another overlay on its own location, and goes on without.
  overlay outer, inner;
  std::string inside;
  inner.task([](int& v) { v = 100; }, write(l));
  inner.schedule();
  outer.task(
      [&](int& v) {
        inside = refusal<weft::orwl::usage_error>([&] { inner.run(rt, 1); });
        v = 7;
      },
      write(l));
  outer.schedule();
  CHECK(outer.run(rt, 2) == 2);
  CHECK_THAT(inside, contains("'table' is used by handles, or by another run of an overlay"));
  CHECK(l.get() == 7);

  // A body that asks for what its overlay has: refused at once, or it would wait for ever.
  overlay greedy;
  weft::orwl::handle<int> h;
  greedy.task([](int&) {}, write(l));
  greedy.task(
      [&](int&) {
        h.request_read(l);
        h.acquire();
      },
      write(other));
  greedy.schedule();
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { greedy.run(rt, 1); }),
             contains("a running overlay uses"));
  h.request_read(l);  // nothing is left behind
  CHECK(h.test());
}

TEST_CASE("a location that is only read must have a value") {
  weft::runtime rt({.workers = 2});
  long seen = 0;
  const auto refused = [&](overlay& o) {
    const std::string text = refusal<weft::orwl::usage_error>([&] { o.run(rt, 2); });
    CHECK_THAT(text, contains("location 1 ('west') of this overlay has no value"));
    CHECK_THAT(text, contains("task 0 ('inner') reads it, no task writes it"));
    CHECK(seen == 0);
  };
  const auto declare = [&](overlay& o, location<long>& west, location<long>& mine) {
    o.task(
        {.name = "inner"},
        [&](long& m, const long& w) {
          m += w;
          seen = m;
        },
        write(mine), read(west));
    o.task([](const long&) {}, read(west));
  };
  SECTION("it gets one later") {
    location<long> west, mine;
    west.named("west");
    overlay o;
    declare(o, west, mine);
    o.schedule();
    refused(o);
    west.get() = 3;
    CHECK(o.run(rt, 2) == 2);
    CHECK(seen == 6);
  }
  SECTION("it is made with one") {
    location<long> west(4L), mine;
    overlay o;
    declare(o, west, mine);
    o.schedule();
    o.run(rt, 2);
    CHECK(seen == 8);
  }
  SECTION("another overlay has written it, or a handle") {
    location<long> west, mine;
    west.named("west");
    if (GENERATE(true, false)) {
      overlay first;
      first.task([](long& w) { w = 5; }, write(west));
      first.schedule();
      first.run(rt, 1);
    } else {
      weft::orwl::handle<long> h;
      h.request_read(west);
      h.acquire();
      CHECK(h.read() == 0);
      h.release();
      overlay still;
      declare(still, west, mine);
      still.schedule();
      refused(still);
      h.request_write(west);
      h.acquire();
      h.write() = 5;
      h.release();
    }
    overlay o;
    declare(o, west, mine);
    o.schedule();
    o.run(rt, 2);
    CHECK(seen == 10);
  }
  SECTION("in canonical form") {
    location<long> west, mine;
    west.named("west");
    overlay o;
    declare(o, west, mine);
    o.make_canonical();
    o.schedule();
    refused(o);
    west.get() = 6;
    o.run(rt, 2);
    CHECK(seen == 12);
  }
}

TEST_CASE("an exception ends an overlay, and another run begins anew") {
  for (const unsigned workers : {1u, 2u, 5u}) {
    weft::runtime rt({.workers = workers});
    row r(20);
    std::atomic<bool> angry{true};
    location<int> extra(0);
    overlay o;
    r.declare(o);
    o.task(
        [&](weft::orwl::turn& t, int& v, const long&) {
          ++v;
          if (angry && t.iteration() == 4) throw std::out_of_range("the fifth turn");
        },
        write(extra), read(r.cells[7]));
    o.schedule();
    CHECK_THROWS_AS(o.run(rt, 1000), std::out_of_range);
    CHECK(extra.get() == 5);
    for (const auto& t : r.turns) CHECK(t.load() < 30);
    angry = false;
    CHECK(o.run(rt, 10) == 10);
    CHECK(extra.get() == 15);
  }
}

TEST_CASE("of two exceptions at the same time that of the first task counts, whichever comes first") {
  for (const bool first_task_first : {true, false})
    for (int round = 0; round < 5; ++round) {
      weft::runtime rt({.workers = 3});
      location<int> a(0), b(0);
      std::atomic<bool> begun[2] = {false, false};
      std::atomic<int> thrown{0};
      overlay o;
      const auto declare = [&](location<int>& l, std::size_t me, bool is_first, const char* text) {
        o.task(
            [&, me, is_first, text](int&) {
              begun[me] = true;
              // The first one waits for the other to begin, and the other one for the first to have thrown.
              weft_test::wait_until([&] { return begun[1 - me].load(); });
              if (!is_first) {
                weft_test::wait_until([&] { return thrown > 0; });
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
              }
              ++thrown;
              throw std::runtime_error(text);
            },
            write(l));
      };
      declare(a, 0, first_task_first, "zero");
      declare(b, 1, !first_task_first, "one");
      o.schedule();
      CHECK_THROWS_WITH(o.run(rt, 3), "zero");
    }
}

TEST_CASE("an exception wakes bodies that wait for a lock of somebody else") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    location<int> a(0), b(0), held(0);
    weft::orwl::handle<int> outside;
    outside.request_write(held);
    weft::orwl::handle<int> inside;
    std::atomic<bool> waits{false};
    overlay o;
    o.task(
        [&](int&) {
          inside.request_write(held);
          waits = true;
          inside.acquire();
        },
        write(a));
    o.task(
        [&](int&) {
          weft_test::wait_until([&] { return waits.load(); });
          throw std::runtime_error("enough");
        },
        write(b));
    o.schedule();
    CHECK_THROWS_WITH(o.run(rt, 10), "enough");
    outside.release();
    inside.request_read(held);
    CHECK(inside.test());
  }
}

TEST_CASE("a run that is stopped from outside ends an overlay") {
  weft::runtime rt({.workers = 2});
  row r(10);
  overlay o;
  r.declare(o);
  o.schedule();
  std::stop_source source;
  std::thread stopper([&] {
    CHECK(weft_test::wait_until([&] { return r.turns[5] > 100; }));
    source.request_stop();
  });
  CHECK_THROWS_AS(o.run_until_stopped(rt, {.stop = source.get_token()}), weft::cancelled);
  stopper.join();
}

TEST_CASE("a turn that stops the overlay gives the same end on every schedule") {
  std::uint64_t ends = 0;
  for (const unsigned workers : {1u, 2u, 3u, 8u})
    for (int again = 0; again < 10; ++again) {
      weft::runtime rt({.workers = workers});
      row r(12);
      location<long> sum(0L);
      overlay o;
      r.declare(o);
      o.task(
          [](weft::orwl::turn& t, long& s, const long& v) {
            s += v;
            if (s > 50'000) t.stop();
          },
          write(sum), read(r.cells[3]));
      o.schedule();
      const std::uint64_t end = o.run_until_stopped(rt);
      if (ends == 0) ends = end;
      REQUIRE(end == ends);
      REQUIRE(end > 10);
      r.expect(static_cast<int>(end));
      REQUIRE(r.as_expected());
    }
}

TEST_CASE("bodies fork, and their children end with the turn") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    weft::runtime rt({.workers = workers});
    location<long> a(1L), b(0L);
    std::vector<long> seen;
    overlay o;
    o.task(
        [](long& v) {
          weft::shared<long> left(v), right(v + 1);
          weft::fork([](long& l) { l *= 2; }, weft::update(left));
          weft::fork([](long& r) { r *= 3; }, weft::update(right));
          weft::fork([&v](long l, long r) { v = (l + r) % 1009; }, weft::read(left), weft::read(right));
        },
        write(a));
    o.task(
        [&](const long& v, long& copy) {
          seen.push_back(copy = v);
          weft::fork([] {});
          weft::sync();
        },
        read(a), write(b));
    o.schedule();
    o.run(rt, 50);
    long want = 1;
    REQUIRE(seen.size() == 50);
    for (const long s : seen) CHECK(s == (want = (2 * want + 3 * (want + 1)) % 1009));

    overlay fails;
    fails.task([](long&) { weft::fork([] { throw std::logic_error("a child's"); }); }, write(a));
    fails.schedule();
    CHECK_THROWS_WITH(fails.run(rt, 3), "a child's");
  }
}

TEST_CASE("bodies wait for each other, and an overlay runs in a task, or in a body of another") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    location<int> a(0), b(0), slot(0);
    weft::orwl::iterative_handle<int> ping, pong;
    ping.request_write(slot);
    pong.request_write(slot);
    overlay o;
    const auto meet = [](auto& h) {
      return [&h](int& mine) {
        weft::orwl::section turn(h);
        mine = ++turn.write();
      };
    };
    o.task(meet(pong), write(a));  // waits for the one behind it
    o.task(meet(ping), write(b));
    o.schedule();
    rt.run([&] {
      weft::fork([&] { CHECK(o.run(rt, 20) == 20); });
      weft::sync();
    });
    ping.cancel();
    pong.cancel();
    CHECK(a.get() == 40);
    CHECK(b.get() == 39);

    row inner(6);
    overlay below, above;
    inner.declare(below);
    below.schedule();
    above.task([&](int&) { below.run(rt, 5); }, write(a));
    above.schedule();
    above.run(rt, 4);
    inner.expect(20);
    CHECK(inner.as_expected());
  }
}

TEST_CASE("the times of all turns are taken down") {
  weft::runtime rt({.workers = 2});
  row r(5);
  overlay o;
  r.declare(o);
  o.schedule();
  o.run(rt, 3);
  CHECK(o.times(0).empty());
  o.record();
  o.run(rt, 7);
  for (std::size_t t = 0; t < o.tasks(); ++t) {
    REQUIRE(o.times(t).size() == 7);
    std::int64_t before = 0;
    for (const auto& turn : o.times(t)) {
      CHECK(turn.begin >= before);
      CHECK(turn.end >= turn.begin);
      before = turn.end;
    }
  }
  CHECK(o.times(99).empty());
  std::ostringstream text;
  o.write_times(text);
  std::istringstream lines(text.str());
  std::string line;
  std::getline(lines, line);
  CHECK(line == "task,name,iteration,waiting_ns,computing_ns,total_ns");
  for (std::size_t t = 0; t < o.tasks(); ++t) {
    std::int64_t sum = 0;
    for (int k = 0; k < 7; ++k) {
      std::getline(lines, line);
      long long task = 0, iteration = 0, waiting = 0, computing = 0, total = 0;
      REQUIRE(std::sscanf(line.c_str(), "%lld,cell,%lld,%lld,%lld,%lld", &task, &iteration, &waiting,
                          &computing, &total) == 5);
      CHECK(task == static_cast<long long>(t));
      CHECK(iteration == k);
      CHECK(waiting + computing == total);
      sum += total;
    }
    CHECK(sum == o.times(t).back().end);
  }
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("values that cannot be assigned have no canonical form") {
  struct measured {
    const int id = 1;
    double value = 0;
  };
  for (const bool canonical : {false, true}) {
    weft::runtime rt({.workers = 2});
    location<measured> place;
    overlay o;
    o.task([](measured& m) { m.value += 1; }, write(place));
    o.task([](measured& m) { m.value *= 2; }, write(place));
    if (canonical) {
      CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.make_canonical(); }),
                 contains("the value of the ORWL location 'location' cannot be copied"));
      continue;
    }
    o.schedule();
    o.run(rt, 5);
    CHECK(place.get().value == 62);
  }
}

TEST_CASE("the canonical form: one location per task, one writer per location, the same values") {
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    location<long> a(1L), b(2L), constant(3L);
    overlay o;
    o.task([](long& x, long& y, const long& c) { x += c, y += x; }, write(a), write(b), read(constant));
    o.task([](long& y, const long& x) { y = 2 * y + x; }, write(b), read(a));
    o.task([](const long&) {}, read(b));
    CHECK_FALSE(o.is_canonical());
    o.make_canonical();
    CHECK(o.is_canonical());
    o.schedule();
    a.get() = 5;  // values count when the run begins
    o.run(rt, 4);
    long x = 5, y = 2;
    for (int k = 0; k < 4; ++k) {
      x += 3, y += x;
      y = 2 * y + x;
    }
    CHECK(a.get() == x);
    CHECK(b.get() == y);
    CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.make_canonical(); }),
               contains("made canonical before"));
    CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.task([](long&) {}, write(a)); }),
               contains("after overlay::make_canonical"));
  }
  location<long> shared_by_two(0L);
  overlay two_writers;  // each task writes one location, but that has two writers
  for (int i = 0; i < 2; ++i) two_writers.task([](long& v) { ++v; }, write(shared_by_two));
  CHECK_FALSE(two_writers.is_canonical());

  location<std::unique_ptr<int>> single, other;
  overlay nameless;
  nameless.task([](std::unique_ptr<int>&, std::unique_ptr<int>&) {}, write(single), write(other));
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { nameless.make_canonical(); }),
             contains("the value of the ORWL location 'location' cannot be copied"));
  single.named("single");
  overlay o;
  o.task([](std::unique_ptr<int>&, std::unique_ptr<int>&) {}, write(single), write(other));
  CHECK_THAT(refusal<weft::orwl::usage_error>([&] { o.make_canonical(); }),
             contains("'single' cannot be copied"));
}
