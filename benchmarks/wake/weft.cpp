// SPDX-License-Identifier: BSL-1.0
// Waking weft's workers from inside, by fork, and from outside, by run; and an idle runtime.
#include "config.hpp"
#include "weft_outcome.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

namespace weft_bench {
namespace {

outcome wake_by_fork(weft::runtime& rt) {
  latencies all;
  int elsewhere = 0;
  rt.run([&] {
    for (int i = 0; i < trials; ++i) {
      pause_for(sleep_before);  // holds this worker; the others find nothing and go to sleep
      std::atomic<bool> started = false;
      double woken = 0;
      const std::thread::id here = std::this_thread::get_id();
      std::thread::id who;
      const double posted = now();
      weft::fork([&] {
        woken = now();
        who = std::this_thread::get_id();
        started.store(true, std::memory_order_release);  // pairs with the acquire below
      });
      const bool inside = started.load(std::memory_order_acquire);
      while (!started.load(std::memory_order_acquire) && now() - posted < 1) {
      }
      weft::sync();
      all.add(woken - posted);
      if (!inside && who != here) ++elsewhere;
    }
  });
  if (elsewhere < trials / 2)
    throw std::runtime_error("only " + std::to_string(elsewhere) + " of " + std::to_string(trials) +
                             " tasks were started by a woken worker");
  return all.median();
}

outcome wake_by_run(weft::runtime& rt) {
  latencies all;
  for (int i = 0; i < trials; ++i) {
    pause_for(sleep_before);
    double woken = 0;
    const double posted = now();
    rt.run([&] { woken = now(); });
    all.add(woken - posted);
  }
  return all.median();
}

outcome run(int index, unsigned workers) {
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  const weft::counters before = rt.counters();
  outcome o{};
  switch (problems[index].what) {
    case from_fork:
      o = wake_by_fork(rt);
      break;
    case from_run:
      o = wake_by_run(rt);
      break;
    case idle:
      o = idle_outcome();
      break;
  }
  const weft::counters after = rt.counters();
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  if (problems[index].what != idle && o.sleeps == 0) throw std::runtime_error("no worker slept");
  return o;
}

bool fits(int index, unsigned workers) { return workers > 1 || problems[index].what != from_fork; }

const registration entry("weft", run, fits);

}  // namespace
}  // namespace weft_bench
