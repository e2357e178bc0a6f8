// SPDX-License-Identifier: BSL-1.0
// A small program around one protocol of the scheduler, played in many simulated worlds.
#pragma once

#include "simulate.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace simulation {

/// Many marked points, for a task that takes its time.
inline void dawdle(unsigned points) {
  for (unsigned i = 0; i < points; ++i) simulation::point(simulation::action::load, nullptr);
}

/// Order matters, and every step shows.
inline long step(long x, long i) { return (x * 31 + i) % 1'000'003; }

inline weft::counters operator+(weft::counters a, const weft::counters& b) {
  a.steals += b.steals;
  a.promotions += b.promotions;
  a.demotions += b.demotions;
  a.renames += b.renames;
  a.folds += b.folds;
  a.replayed += b.replayed;
  a.parkings += b.parkings;
  a.suspensions += b.suspensions;
  a.sleeps += b.sleeps;
  a.dropped += b.dropped;
  a.capped += b.capped;
  return a;
}

/// Plays a scene in many worlds; `times` as many where it is about what happens in few. It returns nothing,
/// or what went wrong. *Returns*: what happened in all of them.
template <class Scene>
weft::counters play(Scene scene, unsigned cap = 1u << 14, std::uint64_t limit = 200'000'000,
                    unsigned times = 1) {
  weft::counters sum;
  const std::uint64_t worlds = weft_test::long_run() ? 100'000 : times * 400 / weft_test::scale() + 1;
  for (std::uint64_t i = 0; i < worlds; ++i) {
    const std::uint64_t seed = i % 2 == 0 ? i : weft_test::seed() % 1'000'000'000 + i;
    std::string wrong;
    simulation::simulate(
        seed,
        [&] {
          weft_test::random dice(seed);
          weft::runtime_options o;
          o.workers = static_cast<unsigned>(2 + dice.below(3));
          o.inlining = dice.one_in(2);
          o.surplus = static_cast<unsigned>(dice.below(5));
          o.cap = cap;
          o.spin = std::chrono::microseconds(dice.below(3) * 5);
          weft::runtime rt(o);
          for (int again = 0; again < 2 && wrong.empty(); ++again) wrong = scene(rt);
          sum = sum + rt.counters();
        },
        limit);
    INFO("seed " << seed);
    if (!wrong.empty()) FAIL(wrong);
  }
  weft_test::figure("simulated_worlds", worlds);
  return sum;
}

inline std::string differs(const char* what, long got, long want) {
  return got == want ? ""
                     : what + std::string(" is ") + std::to_string(got) + ", not " + std::to_string(want);
}

}  // namespace simulation
