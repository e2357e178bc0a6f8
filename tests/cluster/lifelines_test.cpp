// SPDX-License-Identifier: BSL-1.0
// Where a process of a cluster waits for tasks, who waits at it, and what it asks meanwhile.
#include "support/catch.hpp"

#include <weft/cluster/detail/lifelines.hpp>
#include <weft/cluster/detail/requests.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weft::remote::kind;
using weft::remote::lifelines;
using weft::remote::pace;
using weft::remote::requests;

namespace {

using time_point = lifelines::time_point;

/// In how many steps what `from` has reaches all others, each process giving to those who wait at it; -1 if
/// it does not.
int steps_to_all(int from, const std::vector<std::vector<int>>& waiting_at) {
  std::vector<int> reached(waiting_at.size(), -1);
  std::vector<int> last{from};
  reached[static_cast<std::size_t>(from)] = 0;
  std::size_t count = 1;
  int steps = 0;
  for (std::vector<int> next; !last.empty() && count != reached.size(); last = std::exchange(next, {})) {
    ++steps;
    for (const int giver : last)
      for (const int to : waiting_at[static_cast<std::size_t>(giver)])
        if (int& at = reached[static_cast<std::size_t>(to)]; at < 0) {
          at = steps;
          ++count;
          next.push_back(to);
        }
  }
  return count == reached.size() ? steps : -1;
}

/// The requests of process 0 of so many, and what it has sent.
struct asking {
  explicit asking(int processes, std::chrono::microseconds longest_pause = 1ms)
      : lines(0, processes),
        all(0, std::vector<int>(static_cast<std::size_t>(processes)), longest_pause, learned, lines,
            counters) {
    learned.begin();
    lines.begin();
    all.begin(now);
  }
  bool ask(bool hungry = true, unsigned active = 0) {
    return all.ask(now, hungry, active, 1, [this](kind of, int to, unsigned number) {
      CHECK(to != 0);
      CHECK(number >= 1);
      (of == kind::request ? asked : waited).push_back(to);
    });
  }
  /// Asks, and is answered without tasks, until it does not ask at once.
  void ask_in_vain() {
    while (asked.clear(), ask(), !asked.empty()) all.answered(false, now);
  }

  weft::cluster_counters counters;
  pace learned;
  lifelines lines;
  requests all;
  time_point now{};
  std::vector<int> asked{}, waited{};
};

}  // namespace

TEST_CASE("what one process has reaches all others along the lifelines in few steps") {
  for (const int size : {2, 3, 4, 5, 6, 7, 8, 16, 17, 63, 64, 65, 100, 256, 1'000, 1'024, 1'422}) {
    std::vector<std::vector<int>> waiting_at(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) {
      const std::vector<int> at = lifelines::of(i, size);
      CHECK(std::set<int>(at.begin(), at.end()).size() == at.size());
      CHECK(static_cast<int>(at.size()) <= lifelines::degree);
      for (const int to : at) {
        REQUIRE((to >= 0 && to < size && to != i));
        waiting_at[static_cast<std::size_t>(to)].push_back(i);
      }
    }
    int most = 1;  // the logarithm of the size
    for (long reached = lifelines::degree; reached < size; reached *= lifelines::degree) ++most;
    for (int from = 0; from < size; from += std::max(1, size / 40)) {
      const int steps = steps_to_all(from, waiting_at);
      CHECK(steps >= 1);
      CHECK(steps <= most);
    }
    for (const auto& who : waiting_at) CHECK(static_cast<int>(who.size()) <= lifelines::degree);
  }
}

TEST_CASE("a process waits at each of its lifelines once, until that has answered") {
  lifelines l(0, 64);
  std::vector<int> asked;
  const auto ask = [&asked](int to) { asked.push_back(to); };
  CHECK_FALSE(l.waits());
  l.wait_at_all(ask);
  CHECK(asked == lifelines::of(0, 64));
  CHECK(l.waits());
  l.wait_at_all(ask);
  CHECK(asked.size() == lifelines::of(0, 64).size());
  const int one = asked.at(1);
  l.answered(one);
  asked.clear();
  l.wait_at_all(ask);
  CHECK(asked == std::vector<int>{one});
  for (const int to : lifelines::of(0, 64)) l.answered(to);
  CHECK_FALSE(l.waits());
}

TEST_CASE("those who wait are served in turn, and those of the next run when that has begun") {
  lifelines l(0, 64);
  l.add({7, 2, 1});
  l.add({5, 1, 1});
  l.add({6, 1, 3});
  std::vector<int> served;
  for (const std::uint32_t run : {1u, 2u}) {
    l.begin();
    while (const lifelines::waiter* const w = l.first(run)) {
      CHECK(w->run == run);
      served.push_back(w->process);
      l.remove(w);
    }
  }
  CHECK(served == std::vector<int>{5, 6, 7});
}

TEST_CASE("who has tasks of another process names that one once, if it has none to spare for a while") {
  lifelines l(0, 64);
  const time_point now{};
  CHECK(l.name_giver(now + 1s) == lifelines::nobody);
  l.has_given(9, now);
  CHECK(l.name_giver(now) == lifelines::nobody);
  l.has_given(9, now + lifelines::patience);  // more of them: the first ones were in vain all the same
  CHECK(l.name_giver(now + lifelines::patience) == 9);
  CHECK(l.name_giver(now + 1s) == lifelines::nobody);
  l.has_given(9, now);
  l.has_nothing(8);
  CHECK(l.name_giver(now + 1s) == 9);
  l.has_given(9, now);
  l.has_nothing(9);
  CHECK(l.name_giver(now + 1s) == lifelines::nobody);
}

TEST_CASE("a process that has asked in vain waits at its lifelines, and asks others rarely") {
  asking a(64);
  a.ask_in_vain();
  CHECK(a.counters.requests == 8);
  CHECK(a.waited == lifelines::of(0, 64));
  CHECK(a.counters.lifelines == a.waited.size());
  CHECK_FALSE(a.all.all_answered());
  for (int i = 0; i < 10'000; ++i) {  // for a second
    a.now += 100us;
    a.ask_in_vain();
  }
  CHECK(a.counters.requests >= 8 + 1'000 / 32);
  CHECK(a.counters.requests <= 8 + 1'000 / 32 + 12);
  CHECK(a.waited.size() == lifelines::of(0, 64).size());
  for (const int from : lifelines::of(0, 64)) a.all.pushed(from, false, a.now);
  CHECK(a.all.all_answered());
}

TEST_CASE("tasks that come along a lifeline end the wait, and their giver is asked first") {
  asking a(64);
  a.ask_in_vain();
  const int giver = a.waited.at(1);
  a.all.pushed(giver, true, a.now);
  int first = 0;
  for (int turn = 0; turn < 8; ++turn) {
    a.asked.clear();
    REQUIRE(a.ask());  // without a pause
    first += a.asked.at(0) == giver;
    a.all.answered(turn != 7, a.now);
  }
  CHECK(first > 0);
  CHECK(a.waited.size() == lifelines::of(0, 64).size());
  a.ask_in_vain();
  CHECK(a.waited.size() == lifelines::of(0, 64).size() + 1);  // there it waits again
  CHECK(a.waited.back() == giver);
}

TEST_CASE("a process that is named is asked at once") {
  asking a(64);
  a.ask_in_vain();
  a.all.pushed(a.waited.at(0), false, a.now);
  a.all.hear_of(40, a.now);
  a.asked.clear();
  CHECK(a.ask());
  CHECK(a.asked == std::vector<int>{40});
}

TEST_CASE("a process whose workers have something to do waits nowhere") {
  asking a(64);
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(a.ask(false));
    CHECK_FALSE(a.ask(true, 1));
    a.now += 1s;
  }
  CHECK(a.waited.empty());
  CHECK(a.counters.requests == 0);
}
