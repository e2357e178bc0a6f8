// SPDX-License-Identifier: BSL-1.0
// Which tasks of a cluster are recorded: those that are worth it, and some of those that nobody was to look
// at where nothing else is.
#include "support/catch.hpp"

#include <weft/cluster/detail/unit_lengths.hpp>
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <thread>

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using weft::remote::unit_lengths;

void note(unit_lengths& l, unsigned level, microseconds took, unsigned times) {
  for (unsigned i = 0; i < times; ++i) l.note(level, took, microseconds(1));
}

std::atomic<int> executed{0};
constexpr int short_tasks = 20, long_tasks = 30;

void last(milliseconds how_long) {
  const auto end = std::chrono::steady_clock::now() + how_long;
  while (std::chrono::steady_clock::now() < end) {
  }
  ++executed;
}
int short_task(int i) {
  ++executed;
  return i;
}
int long_task(int i) {
  last(milliseconds(30));
  return i;
}
/// Occupies a worker until all others have ended.
int hold(int) {
  ++executed;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (executed < 2 + short_tasks + long_tasks && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  return 0;
}
/// So many tasks of no length, so that the keeper has seen enough of them.
void run_short_tasks(int n) {
  for (int i = 0; i < n; ++i) weft::fork(short_task, i);
  weft::sync();
}

}  // namespace

TEST_CASE("tasks of a level are recorded unless the mean of enough of them is short", "[cluster]") {
  unit_lengths l;
  l.begin(1, unit_lengths::clock::now());
  CHECK(l.are_long(3));
  note(l, 3, microseconds(1), unit_lengths::enough - 1);
  CHECK(l.are_long(3));
  note(l, 3, microseconds(1), 1);
  CHECK_FALSE(l.are_long(3));
  CHECK(l.are_long(2));
  note(l, 3, milliseconds(10), 1);
  CHECK(l.are_long(3));
  CHECK_FALSE(l.are_long(unit_lengths::levels));
}

TEST_CASE("short levels are tried again, and found short or long", "[cluster]") {
  unit_lengths l;
  l.begin(1, unit_lengths::clock::now());
  for (const microseconds then : {microseconds(1), microseconds(2000)}) {
    note(l, 1, microseconds(1), unit_lengths::enough);
    REQUIRE_FALSE(l.are_long(1));
    l.look_again();
    CHECK(l.are_long(1));
    note(l, 1, then, unit_lengths::enough);
    CHECK(l.are_long(1) == (then >= unit_lengths::short_task));
  }
}

TEST_CASE("records take a small part of the time of all workers", "[cluster]") {
  unit_lengths l;
  const auto begun = unit_lengths::clock::now();
  l.begin(2, begun);
  CHECK(l.can_afford(begun));
  l.note(1, milliseconds(1), unit_lengths::start + milliseconds(10));
  CHECK_FALSE(l.can_afford(begun + milliseconds(499)));
  CHECK(l.can_afford(begun + milliseconds(501)));
}

TEST_CASE("tasks that take long are recorded, and short ones are not", "[cluster]") {
  weft::thread_cluster c(1);
  weft::remote::finished_tasks records;
  weft::remote::thread_cluster_key::process(c, 0).record_in(&records);
  c.run([] {
    run_short_tasks(1000);
    weft::fork(short_task, -1);
  });
  const std::size_t of_short = records.size();
  CHECK(of_short < 20);  // of those whose thread has lost its processor
  c.run([] {
    for (int i = 0; i < 5; ++i) weft::fork(long_task, i);
  });
  CHECK(records.size() == of_short + 5);
}

TEST_CASE("where nothing is recorded for long, a task that was not to be shown is", "[cluster]") {
  weft::thread_cluster c(2);
  std::deque<weft::remote::finished_tasks> records(2);
  for (int i = 0; i < 2; ++i) weft::remote::thread_cluster_key::process(c, i).record_in(&records[i]);
  executed = 0;
  c.run([] {
    for (int i = 0; i < short_tasks; ++i) run_short_tasks(1);
    weft::fork(hold, 1);  // by the other process, which asks for no more then
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (executed <= short_tasks && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    // Now nobody looks at what is forked here.
    for (int i = 0; i < long_tasks; ++i) weft::fork(long_task, i);
    last(milliseconds(200));
  });
  CHECK(executed == 2 + short_tasks + long_tasks);
  // Of each task that has come there, the end is recorded here.
  CHECK(c.counters(0).tasks_recorded > c.counters(1).closures_received);
}
