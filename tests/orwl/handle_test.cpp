// SPDX-License-Identifier: BSL-1.0
// Locations and handles: who gets the lock when, how a body waits for it, and what is refused.
#include "flow/runtimes.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/orwl.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft::orwl::handle;
using weft::orwl::iterative_handle;
using weft::orwl::location;
using weft::orwl::section;
using weft_test::contains;

namespace {

/// What f is told.
template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const weft::orwl::usage_error& e) {
    return e.what();
  }
  return "nothing";
}

/// What a queue should do, in the simplest way: the whole list of requests, searched from the front.
struct model_queue {
  struct entry {
    int who;
    bool exclusive;
    bool operator==(const entry&) const = default;
  };
  std::vector<entry> all;

  bool holds(int who) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].exclusive && i != 0) return false;
      if (all[i].who == who) return true;
      if (all[i].exclusive) return false;
    }
    return false;
  }
  void remove(int who) {
    std::erase_if(all, [&](const entry& e) { return e.who == who; });
  }
};

}  // namespace

TEST_CASE("handles in the wrong state are refused, and stay usable") {
  location<int> l(7), other(1);
  handle<int> h;
  iterative_handle<int> i;
  CHECK_THAT(refusal([&] { h.acquire(); }), contains("is acquired, but it has no request"));
  CHECK_THAT(refusal([&] { h.test(); }), contains("is tested, but it has no request"));
  CHECK_THAT(refusal([&] { h.release(); }), contains("is released, but it has no request"));
  CHECK_THAT(refusal([&] { h.read(); }), contains("is read through, but it has no request"));
  CHECK_THAT(refusal([&] { i.acquire(); }), contains("is acquired, but it has no request"));
  CHECK_THAT(refusal([&] { i.release(); }), contains("is released, but it has no request"));
  CHECK_THAT(refusal([&] { i.write(); }), contains("is written through, but it has no request"));

  h.request_read(l);
  CHECK_THAT(refusal([&] { h.request_write(other); }), contains("posts a request, but it holds the lock"));
  CHECK(h.test());
  h.acquire();
  CHECK(h.read() == 7);
  CHECK_THAT(refusal([&] { h.write(); }), contains("holds the lock for reading"));

  i.request_write(l);
  CHECK_FALSE(i.test());
  CHECK_THAT(refusal([&] { i.write(); }), contains("is written through, but its request waits"));
  CHECK_THAT(refusal([&] { i.release(); }), contains("is released, but its request waits"));
  CHECK_THAT(refusal([&] { i.request_read(other); }), contains("posts a request, but its request waits"));
  h.release();
  CHECK_THAT(refusal([&] { h.release(); }), contains("is released, but it has no request"));
  CHECK_THAT(refusal([&] { h.read(); }), contains("is read through, but it has no request"));
  REQUIRE(i.test());
  i.write() = 8;
  i.release();
  CHECK(i.test());  // its next turn has come
  i.cancel();
  i.cancel();
  h.request_write(l);
  CHECK(h.write() == 8);
}

TEST_CASE("consecutive readers share, and nobody overtakes") {
  location<int> l(0);
  handle<int> r1, r2, w1, r3, w2;
  r1.request_read(l);
  r2.request_read(l);
  w1.request_write(l);
  r3.request_read(l);  // would fit to r1 and r2, but w1 was first
  w2.request_write(l);
  CHECK(r1.test());
  CHECK(r2.test());
  CHECK_FALSE(w1.test());
  CHECK_FALSE(r3.test());
  r1.release();
  CHECK_FALSE(w1.test());
  r2.release();
  CHECK(w1.test());
  CHECK_FALSE(r3.test());
  w1.release();
  CHECK(r3.test());
  CHECK_FALSE(w2.test());
  r3.release();
  CHECK(w2.test());
}

TEST_CASE("a withdrawn request lets those behind it move up") {
  location<int> l(0);
  handle<int> r1, w, r2, last;
  r1.request_read(l);
  w.request_write(l);
  r2.request_read(l);
  last.request_write(l);
  w.cancel();
  CHECK(r1.test());
  CHECK(r2.test());
  r1.cancel();  // held
  {
    handle<int> waits;
    waits.request_write(l);
  }  // a handle that ends withdraws its request
  last.cancel();
  r2.release();
  handle<int> again;
  again.request_write(l);
  CHECK(again.test());
}

TEST_CASE("an iterative handle keeps its turn") {
  location<std::vector<int>> l;
  std::array<iterative_handle<std::vector<int>>, 3> h;
  for (auto& one : h) one.request_write(l);
  for (int k = 0; k < 12; ++k) {
    for (std::size_t i = 0; i < h.size(); ++i) CHECK(h[i].test() == (static_cast<int>(i) == k % 3));
    auto& mine = h[static_cast<std::size_t>(k % 3)];
    mine.write().push_back(k % 3);
    mine.release();
  }
  for (auto& one : h) one.cancel();
  CHECK(l.get() == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("a queue does what a plain list does") {
  weft_test::random dice(weft_test::seed());
  constexpr int count = 6;
  std::uint64_t granted = 0, withdrawn = 0;
  for (int game = 0; game < 300; ++game) {
    location<int> l(0);
    std::array<handle<int>, count> once;
    std::array<iterative_handle<int>, count> often;  // numbers from `count` on
    model_queue model;
    for (int step = 0; step < 60; ++step) {
      const int who = static_cast<int>(dice.below(2 * count));
      const bool iterative = who >= count;
      auto& h = once[static_cast<std::size_t>(who % count)];
      auto& i = often[static_cast<std::size_t>(who % count)];
      const auto mine = std::ranges::find_if(model.all, [&](const auto& e) { return e.who == who; });
      if (mine == model.all.end()) {
        const bool exclusive = dice.one_in(2);
        if (exclusive) {
          iterative ? i.request_write(l) : h.request_write(l);
        } else {
          iterative ? i.request_read(l) : h.request_read(l);
        }
        model.all.push_back({who, exclusive});
      } else if (dice.one_in(6)) {
        iterative ? i.cancel() : h.cancel();
        model.remove(who);
        ++withdrawn;
      } else if (model.holds(who)) {
        const auto entry = *mine;
        iterative ? i.release() : h.release();
        model.all.erase(mine);
        if (iterative) model.all.push_back(entry);
        ++granted;
      }
      for (const auto& e : model.all) {
        const bool held = e.who < count ? once[static_cast<std::size_t>(e.who)].test()
                                        : often[static_cast<std::size_t>(e.who % count)].test();
        REQUIRE(held == model.holds(e.who));
      }
    }
  }
  CHECK(granted > 1000);
  CHECK(withdrawn > 500);
}

TEST_CASE("bodies that wait for each other give their workers away") {
  constexpr int count = 40;
  for (const unsigned workers : {1u, 2u, 5u}) {
    INFO("workers " << workers);
    weft::runtime rt({.workers = workers});
    // Turns go round from the last one forked to the first one: every body waits for one that is forked
    // later.
    location<std::vector<int>> l;
    std::deque<iterative_handle<std::vector<int>>> h(count);
    for (int i = count; i-- > 0;) h[static_cast<std::size_t>(i)].request_write(l);
    rt.run([&] {
      for (int i = 0; i < count; ++i)
        weft::fork([&, i] {
          for (int k = 0; k < 5; ++k) {
            section turn(h[static_cast<std::size_t>(i)]);
            turn.write().push_back(i);
          }
        });
    });
    for (auto& one : h) one.cancel();
    bool right = l.get().size() == 5 * count;
    for (std::size_t n = 0; right && n < l.get().size(); ++n)
      right = l.get()[n] == count - 1 - static_cast<int>(n) % count;
    CHECK(right);
    CHECK(rt.counters().suspensions > 0);
  }
}

TEST_CASE("readers together, writers alone, in tasks and in other threads") {
  const unsigned rounds = weft_test::long_run() ? 20'000 : 400 / weft_test::scale();
  location<long> l(0L);
  std::atomic<int> readers{0}, writers{0};
  std::atomic<bool> right{true};
  std::atomic<long> together{0};
  const auto use = [&](bool exclusive, auto& h) {
    section hold(h);
    if (exclusive) {
      if (writers.fetch_add(1) != 0 || readers.load() != 0) right = false;
      hold.write() += 1;
      writers.fetch_sub(1);
    } else {
      if (readers.fetch_add(1) != 0) ++together;
      for (int i = 0; i < 4 && readers == 1; ++i) std::this_thread::yield();
      if (writers.load() != 0) right = false;
      static_cast<void>(hold.read());
      readers.fetch_sub(1);
    }
  };
  weft::runtime rt({.workers = 3});
  std::deque<iterative_handle<long>> h(12);
  for (std::size_t i = 0; i < h.size(); ++i) i % 3 == 0 ? h[i].request_write(l) : h[i].request_read(l);
  const auto loop = [&](std::size_t i) {
    for (unsigned k = 0; k < rounds; ++k) use(i % 3 == 0, h[i]);
    h[i].cancel();
  };
  std::vector<std::thread> outside;
  for (std::size_t i = 0; i < 4; ++i) outside.emplace_back([&, i] { loop(i); });
  rt.run([&] {
    for (std::size_t i = 4; i < h.size(); ++i) weft::fork([&, i] { loop(i); });
  });
  for (std::thread& t : outside) t.join();
  CHECK(right);
  CHECK(together > 0);
  CHECK(l.get() == 4 * static_cast<long>(rounds));
}

TEST_CASE("a stopped run wakes bodies that wait for a lock, and their requests are gone") {
  for (const unsigned workers : {1u, 3u}) {
    weft::runtime rt({.workers = workers});
    location<int> l(0);
    handle<int> outside;
    outside.request_write(l);
    std::deque<handle<int>> h(5);
    std::atomic<int> waiting{0}, woken{0};
    std::stop_source source;
    std::thread stopper([&] {
      CHECK(weft_test::wait_until([&] { return waiting == 5; }));
      source.request_stop();
    });
    CHECK_THROWS_AS(rt.run({.stop = source.get_token()},
                           [&] {
                             for (auto& one : h)
                               weft::fork([&] {
                                 one.request_write(l);
                                 ++waiting;
                                 try {
                                   one.acquire();
                                 } catch (const weft::cancelled&) {
                                   ++woken;
                                   throw;
                                 }
                               });
                           }),
                    weft::cancelled);
    stopper.join();
    CHECK(woken == 5);
    outside.release();
    for (auto& one : h) CHECK_THAT(refusal([&] { one.test(); }), contains("it has no request"));
    outside.request_write(l);
    CHECK(outside.test());
    outside.cancel();
    rt.run([&] {  // as good as before
      section turn((h[0].request_write(l), h[0]));
      turn.write() = 5;
    });
    CHECK(l.get() == 5);
  }
}

TEST_CASE("an exception that leaves a section gives up the turns of its handle") {
  for (const unsigned workers : {1u, 2u}) {
    weft::runtime rt({.workers = workers});
    location<long> slot(0L);
    iterative_handle<long> producer, consumer;
    producer.request_write(slot);
    consumer.request_read(slot);
    std::vector<long> seen;
    CHECK_THROWS_AS(rt.run([&] {
      weft::fork([&] {
        for (long k = 1;; ++k) {
          section turn(producer);
          turn.write() = k;
          if (k == 4) throw std::out_of_range("four");
        }
      });
      weft::fork([&] {
        for (int k = 1; k <= 10; ++k) {
          section turn(consumer);
          seen.push_back(turn.read());
        }
      });
    }),
                    std::out_of_range);
    consumer.cancel();
    if (!seen.empty()) CHECK(seen == std::vector<long>{1, 2, 3, 4, 4, 4, 4, 4, 4, 4});
    handle<long> free;
    free.request_write(slot);
    CHECK(free.test());
  }
}

TEST_CASE("somebody who waits for a lock is described") {
  weft::runtime rt({.workers = 2});
  location<int> l(0);
  handle<int> outside, inside;
  outside.request_write(l);
  inside.request_read(l);
  std::string text;
  std::thread looks([&] {
    weft_test::wait_until([&] {
      text = rt.describe();
      return text.find("ORWL") != std::string::npos;
    });
    outside.release();
  });
  rt.run([&] { weft::fork({.name = "reader"}, [&] { section turn(inside); }); });
  looks.join();
  CHECK_THAT(text, contains("'reader' waits for the lock of an ORWL location"));
}

TEST_CASE("locations and handles that end too early stop the program") {
  const auto location_ends = weft_test::run_in_child([] {
    handle<int> h;
    location<int> l(0);
    h.request_read(l);
  });
  CHECK(location_ends.aborted());
  CHECK_THAT(location_ends.output, contains("location is destroyed while handles have requests"));
  const auto handle_ends = weft_test::run_in_child([] {
    location<int> l(0);
    handle<int> first;
    first.request_write(l);
    auto second = std::make_unique<handle<int>>();
    second->request_write(l);
    std::thread waits([&] { second->acquire(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    second.reset();
    first.release();
    waits.join();
  });
  CHECK(handle_ends.aborted());
  CHECK_THAT(handle_ends.output, contains("while somebody waits"));
}

#if WEFT_CHECKED
TEST_CASE("a body that holds something of its thread must not wait for a lock") {
  const auto child = weft_test::run_in_child([] {
    weft::runtime rt({.workers = 1});
    location<int> l(0);
    handle<int> outside, inside;
    outside.request_write(l);
    rt.run([&] {
      weft::fork({.name = "holder"}, [&] {
        inside.request_write(l);
        const weft::this_task::no_suspend mark("table");
        inside.acquire();
      });
    });
  });
  CHECK(child.aborted());
  CHECK_THAT(child.output, contains("task 'holder' acquires an ORWL lock while 'table' is held"));
}
#endif
