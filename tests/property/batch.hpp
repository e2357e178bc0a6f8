// SPDX-License-Identifier: BSL-1.0
// How random programs are run: block by block under changing options, and one of them again.
#pragma once

#include "check.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace property {

inline std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Fails the test case with a report whose lines stay as they are, so that the command in it can be copied.
inline void fail_with(const std::string& report) {
  std::fprintf(stderr, "%s\n", report.c_str());
  FAIL(report.substr(0, report.find('\n')) << " (report on the standard error stream)");
}

/// How many programs there are, `usual` of them in a run that is not long.
inline std::uint64_t programs(unsigned usual) {
  return number("WEFT_TEST_PROGRAMS", (weft_test::long_run() ? 500000u : usual) / weft_test::scale() + 1);
}

/// Options of one batch. Every count of workers gets every combination in the long run.
inline setup options_for(std::uint64_t seed, unsigned workers) {
  weft_test::random dice(seed);
  static constexpr unsigned spins[] = {0, 20, 100};
  setup how;
  how.workers = workers;
  how.inlining = !dice.one_in(4);
  how.surplus = static_cast<unsigned>(dice.below(9));
  if (dice.one_in(4)) how.cap = static_cast<unsigned>(1 + dice.below(12));
  how.spin = spins[dice.below(3)];
  return how;
}

/// What has happened in all runs so far.
struct result {
  std::uint64_t compared = 0;
  weft::counters sum{};
  std::string failure{};

  void add(const weft::counters& c) {
    sum.deferred += c.deferred;
    sum.inlined += c.inlined;
    sum.steals += c.steals;
    sum.promotions += c.promotions;
    sum.folds += c.folds;
    sum.replayed += c.replayed;
    sum.renames += c.renames;
    sum.demotions += c.demotions;
    sum.capped += c.capped;
    sum.divisions += c.divisions;
    sum.parkings += c.parkings;
    sum.suspensions += c.suspensions;
    sum.dropped += c.dropped;
  }
};

/// Runs the programs of `count` seeds from `first` on, each with every number of workers, until one fails.
/// `run` does it with one, on the runtime that it is given, and returns a report if it fails.
template <class Run>
void run_block(std::uint64_t first, std::uint64_t count, result& r, Run&& run) {
  constexpr std::uint64_t per_runtime = 20;
  last_words words;
  for (std::uint64_t batch = 0; batch < count; batch += per_runtime)
    for (const unsigned workers : {1u, 2u, 3u, 4u, 8u, 16u}) {
      setup how = options_for((first + batch) * 64 + workers, workers);
      weft::runtime rt(how.options());
      for (std::uint64_t i = batch; i < std::min(count, batch + per_runtime); ++i) {
        how.seed = first + i;
        words.now(how);
        r.failure = run(rt, how);
        ++r.compared;
        if (!r.failure.empty()) return;
      }
      r.add(rt.counters());
    }
}

/// The same with a number of seeds, `usual_count` of them in a run that is not long: half are always the
/// same, the others are those of this run. Fails the test case with the first report.
template <class Run>
void run_all(unsigned usual_count, result& r, Run&& run) {
  const std::uint64_t all = programs(usual_count);
  run_block(1, all / 2, r, run);
  if (r.failure.empty()) run_block(weft_test::seed(), all - all / 2, r, run);
  if (!r.failure.empty()) fail_with(r.failure);
}

/// What the printed command runs: one seed, many times, with the options of the failure.
template <class Run>
void repeat_one(Run&& run) {
  setup how;
  how.seed = number("WEFT_TEST_ONLY", weft_test::seed());
  how.workers = static_cast<unsigned>(number("WEFT_TEST_WORKERS", 2));
  how.inlining = number("WEFT_TEST_INLINING", 1) != 0;
  how.surplus = static_cast<unsigned>(number("WEFT_TEST_SURPLUS", 4));
  how.cap = static_cast<unsigned>(number("WEFT_TEST_CAP", 1u << 14));
  how.spin = static_cast<unsigned>(number("WEFT_TEST_SPIN", 100));
  how.fault = static_cast<planted>(number("WEFT_TEST_PLANT", 0));
  const std::uint64_t times = number("WEFT_TEST_REPEAT", 1000);
  last_words words;
  weft::runtime rt(how.options());
  for (std::uint64_t i = 0; i < times; ++i) {
    words.now(how);
    const std::string failure = run(rt, how);
    if (!failure.empty()) fail_with(failure);
  }
}

}  // namespace property
