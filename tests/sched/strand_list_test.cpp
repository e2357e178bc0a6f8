// SPDX-License-Identifier: BSL-1.0
// Lists of strands: order, removal anywhere, and use by several threads.
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/sched/detail/ready_strands.hpp>
#include <weft/sched/detail/strand_list.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

using weft::sched::strand;
using weft::sched::strand_list;

namespace {

std::vector<strand*> contents(strand_list& l) {
  std::vector<strand*> all;
  l.first_of([&](strand& s) -> strand* {
    all.push_back(&s);
    return nullptr;
  });
  return all;
}

}  // namespace

TEST_CASE("what came first leaves first") {
  strand_list l;
  std::deque<strand> s(3);
  CHECK(l.empty());
  CHECK(l.pop_front() == nullptr);
  for (strand& x : s) l.push_back(x);
  CHECK_FALSE(l.empty());
  for (strand& x : s) CHECK(l.pop_front() == &x);
  CHECK(l.empty());
  CHECK(l.pop_front() == nullptr);
}

TEST_CASE("a strand may leave from anywhere, and come back") {
  std::deque<strand> s(4);
  for (std::size_t leaves = 0; leaves < s.size(); ++leaves) {
    strand_list l;
    for (strand& x : s) l.push_back(x);
    l.remove(s[leaves]);
    std::vector<strand*> expected;
    for (strand& x : s)
      if (&x != &s[leaves]) expected.push_back(&x);
    CHECK(contents(l) == expected);
    l.push_back(s[leaves]);
    expected.push_back(&s[leaves]);
    CHECK(contents(l) == expected);
    for (strand* x : expected) l.remove(*x);
    CHECK(l.empty());
    CHECK(contents(l).empty());
  }
}

TEST_CASE("the search stops at the first that fits") {
  strand_list l;
  std::deque<strand> s(3);
  CHECK(l.first_of([](strand& x) { return &x; }) == nullptr);
  for (strand& x : s) l.push_back(x);
  int visits = 0;
  CHECK(l.first_of([&](strand& x) {
    ++visits;
    return &x == &s[1] ? &x : nullptr;
  }) == &s[1]);
  CHECK(visits == 2);
  CHECK(contents(l).size() == 3);
}

TEST_CASE("no strand is lost or doubled between threads") {
  strand_list a, b;
  std::deque<strand> s(16);
  for (strand& x : s) a.push_back(x);
  const int n = 20'000 / static_cast<int>(weft_test::scale());
  std::atomic<long> moved{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      strand_list &from = t % 2 == 0 ? a : b, &to = t % 2 == 0 ? b : a;
      for (int i = 0; i < n; ++i) {
        if (strand* x = from.pop_front()) {
          to.push_back(*x);
          if (i % 3 == 0) std::this_thread::yield();
          moved.fetch_add(1, std::memory_order_relaxed);  // join orders it before the read
        }
        from.first_of([](strand& x) { return x.next; });
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(moved > 0);
  CHECK(contents(a).size() + contents(b).size() == s.size());
}

TEST_CASE("ready strands leave by priority, and in order of arrival where that is equal") {
  weft::sched::ready_strands ready;
  std::deque<strand> s(200);
  weft_test::random random(7);
  std::vector<strand*> expected, order;
  for (strand& x : s) {
    x.priority = static_cast<int>(random.below(5)) - 2;
    ready.push_back(x);
    order.push_back(&x);
  }
  std::size_t seen = 0;
  CHECK(ready.each(10, [&](strand&) { ++seen; }));
  CHECK(seen == s.size());
  std::stable_sort(order.begin(), order.end(),
                   [](strand* a, strand* b) { return a->priority > b->priority; });
  for (std::size_t i = 0; i < 50; ++i) CHECK(ready.pop_front() == order[i]);
  // Those that come again stand behind their equals.
  for (std::size_t i = 0; i < 50; ++i) ready.push_back(*order[i]);
  std::rotate(order.begin(), order.begin() + 50, order.end());
  std::stable_sort(order.begin(), order.end(),
                   [](strand* a, strand* b) { return a->priority > b->priority; });
  for (strand* x : order) CHECK(ready.pop_front() == x);
  CHECK(ready.empty());
  CHECK(ready.pop_front() == nullptr);
}

TEST_CASE("ready strands are taken out wherever they stand") {
  weft_test::random random(8);
  for (int round = 0; round < 200; ++round) {
    weft::sched::ready_strands ready;
    std::deque<strand> s(1 + random.below(12));
    std::vector<strand*> order;
    for (strand& x : s) {
      x.priority = static_cast<int>(random.below(3));
      ready.push_back(x);
      order.push_back(&x);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](strand* a, strand* b) { return a->priority > b->priority; });
    for (std::size_t n = random.below(s.size() + 1); n > 0; --n) {
      const auto which = order.begin() + static_cast<std::ptrdiff_t>(random.below(order.size()));
      strand& taken = **which;
      if (random.one_in(4)) {
        taken.status.store(weft::sched::strand_status::waiting, std::memory_order_relaxed);  // one thread
        CHECK_FALSE(ready.remove_unbegun(taken));
        taken.status.store(weft::sched::strand_status::idle, std::memory_order_relaxed);
      }
      CHECK(ready.remove_unbegun(taken));
      CHECK_FALSE(ready.remove_unbegun(taken));
      order.erase(which);
      if (random.one_in(3)) {  // and comes again, behind its equals
        ready.push_back(taken);
        order.insert(std::upper_bound(order.begin(), order.end(), &taken,
                                      [](strand* a, strand* b) { return a->priority > b->priority; }),
                     &taken);
      }
    }
    CHECK(ready.empty() == order.empty());
    CHECK(ready.has_above(0) == (!order.empty() && order.front()->priority > 0));
    for (strand* x : order) CHECK(ready.pop_front() == x);
    CHECK(ready.pop_front() == nullptr);
  }
}
