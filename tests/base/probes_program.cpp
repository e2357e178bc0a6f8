// SPDX-License-Identifier: BSL-1.0
// A program that passes all probes, for tracers: thefts, waits, a graph that is left again, sleep, an
// exception. It ends with status 0 if its counters say so, too.
#include <weft/threads.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

template <class Happened>
void wait_until(Happened happened) {
  while (!happened()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Another worker takes a task, which runs until this body waits for it.
void steal_and_wait() {
  std::atomic<bool> begun{false}, waited{false};
  weft::fork({.name = "stolen", .event = true}, [&] {
    begun = true;
    wait_until([&] { return waited.load(); });
  });
  wait_until([&] { return begun.load(); });
  weft::mutex door;
  weft::latch both(2);
  weft::spawn({.name = "waits"}, [&] {
    both.arrive_and_wait();
    const std::unique_lock lock(door);
    waited = true;
  });
  {
    const std::unique_lock lock(door);
    both.arrive_and_wait();
  }
  weft::sync();
}

/// Frames of tiny tasks, until a thief has made a graph for one and its owner has left that.
void promote_and_demote(weft::runtime& rt) {
  weft::shared<long> a(0), b(0);
  wait_until([&] {
    rt.run([&] {
      for (int i = 0; i < 20'000; ++i) weft::fork([](long& v) { ++v; }, weft::update(i % 2 == 0 ? a : b));
    });
    return rt.counters().promotions != 0 && rt.counters().demotions != 0;
  });
}

}  // namespace

int main() {
  weft::runtime rt({.workers = 2});
  rt.run(steal_and_wait);
  promote_and_demote(rt);
  wait_until([&] { return rt.counters().sleeps != 0; });
  int caught = 0;
  try {
    rt.run([] { weft::fork({.name = "throws", .event = true}, [] { throw 7; }); });
  } catch (int number) {
    caught = number;
  }
  const weft::counters c = rt.counters();
  std::printf("%d %d\n", static_cast<int>(c.steals != 0 && c.suspensions != 0), caught);
  return c.steals != 0 && c.suspensions != 0 && caught == 7 ? 0 : 1;
}
