// SPDX-License-Identifier: BSL-1.0
// Random programs over all access modes give on the library what a sequential interpreter gives.
#include "modes_check.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/random.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using property::expectation;
using property::last_words;
using property::runs;
using property::setup;
using namespace property::modes;

namespace {

constexpr const char* one_program = "one program of all modes";

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Fails the test case with a report whose lines stay as they are, so that the command in it can be copied.
void fail_with(const std::string& report) {
  std::fprintf(stderr, "%s\n", report.c_str());
  FAIL(report.substr(0, report.find('\n')) << " (report on the standard error stream)");
}

std::uint64_t programs() {
  return number("WEFT_TEST_PROGRAMS", (weft_test::long_run() ? 200000u : 6000u) / weft_test::scale() + 1);
}

setup options_for(std::uint64_t batch, unsigned workers) {
  weft_test::random dice(batch * 64 + workers + 32);
  static constexpr unsigned spins[] = {0, 20, 100};
  setup how;
  how.test = one_program;
  how.workers = workers;
  how.inlining = !dice.one_in(4);
  how.surplus = static_cast<unsigned>(dice.below(9));
  if (dice.one_in(4)) how.cap = static_cast<unsigned>(1 + dice.below(12));
  how.spin = spins[dice.below(3)];
  return how;
}

struct result {
  std::uint64_t compared = 0, threw = 0;
  weft::counters sum{};
  notices seen{};
  std::string failure{};
};

/// Runs the programs of `count` seeds from `first` on, each with every number of workers.
void run_block(std::uint64_t first, std::uint64_t count, result& r) {
  constexpr std::uint64_t per_runtime = 20;
  last_words words;
  for (std::uint64_t batch = 0; batch < count; batch += per_runtime)
    for (const unsigned workers : {1u, 2u, 3u, 4u, 8u, 16u}) {
      setup how = options_for(first + batch, workers);
      weft::runtime rt(how.options());
      for (std::uint64_t i = batch; i < std::min(count, batch + per_runtime); ++i) {
        how.seed = first + i;
        words.now(how);
        const program p = generate(how.seed);
        const std::string text = difference(rt, p, how, r.seen);
        ++r.compared;
        r.threw += interpret(p).exception != 0;
        if (text.empty()) continue;
        r.failure = explain(rt, p, how, text);
        return;
      }
      const weft::counters c = rt.counters();
      r.sum.deferred += c.deferred;
      r.sum.steals += c.steals;
      r.sum.promotions += c.promotions;
      r.sum.folds += c.folds;
      r.sum.replayed += c.replayed;
      r.sum.renames += c.renames;
      r.sum.demotions += c.demotions;
      r.sum.capped += c.capped;
      r.sum.parkings += c.parkings;
      r.sum.suspensions += c.suspensions;
      r.sum.dropped += c.dropped;
    }
}

}  // namespace

TEST_CASE("random programs over all access modes give what the serial program gives") {
  result r;
  run_block(1, programs() / 2, r);  // always the same ones
  if (r.failure.empty()) run_block(weft_test::seed(), programs() - programs() / 2, r);
  if (!r.failure.empty()) fail_with(r.failure);
  const auto print = [](const char* what, std::uint64_t n) {
    std::printf("%s %llu\n", what, static_cast<unsigned long long>(n));
  };
  print("runs compared", r.compared);
  print("with an exception", r.threw);
  print("contributors met another", r.seen.together);
  print("deferred", r.sum.deferred);
  print("steals", r.sum.steals);
  print("promotions", r.sum.promotions);
  print("folds", r.sum.folds);
  print("replayed", r.sum.replayed);
  print("renames", r.sum.renames);
  print("demotions", r.sum.demotions);
  print("capped", r.sum.capped);
  print("parkings", r.sum.parkings);
  print("suspensions", r.sum.suspensions);
  print("dropped", r.sum.dropped);
  weft_test::figure("programs_compared", r.compared);
  CHECK(r.compared >= programs() * 6);
  CHECK(r.threw > 0);
  CHECK(r.seen.together > 0);  // so some contributions were kept apart
  CHECK(r.sum.deferred > 0);
  CHECK(r.sum.steals > 0);
  CHECK(r.sum.promotions > 0);
  CHECK(r.sum.folds > 0);
  CHECK(r.sum.replayed > 0);
  CHECK(r.sum.renames > 0);
  CHECK(r.sum.capped > 0);
  CHECK(r.sum.parkings > 0);
  CHECK(r.sum.suspensions > 0);
  CHECK(r.sum.dropped > 0);
  for (std::size_t i = 0; i < shape_kinds().size(); ++i) {
    std::string text;
    for (const kind k : shape_kinds()[i]) text += std::string(of(k).text) + ", ";
    INFO("shape (" << text << ")");
    CHECK(launches(i) > 0);
  }
}

TEST_CASE("generated programs over all access modes are legal, varied, and the same for the same seed") {
  std::uint64_t threw = 0, caught = 0, tasks = 0, known = 0, unknown = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const program p = generate(seed);
    REQUIRE(print(p) == print(generate(seed)));
    program again = p;
    legalise(again);
    REQUIRE(print(p) == print(again));
    expectation e;
    REQUIRE_NOTHROW(e = interpret(p));  // it throws if a step is not legal
    threw += e.exception != 0;
    caught += static_cast<std::uint64_t>(e.caught);
    for (const runs r : e.tasks) tasks += static_cast<std::uint64_t>(r.least);
    for (const property::cell& c : e.objects) ++(c.known ? known : unknown);
  }
  std::printf("2000 programs: %llu throw, %llu exceptions caught, %llu tasks, %llu of %llu cells compared\n",
              static_cast<unsigned long long>(threw), static_cast<unsigned long long>(caught),
              static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(known),
              static_cast<unsigned long long>(known + unknown));
  CHECK(threw > 100);
  CHECK(caught > 50);
  CHECK(tasks > 10000);
  CHECK(known > unknown);
}

TEST_CASE("a wrong order of contributions is noticed and shrunk") {
  setup how;
  how.planted = true;
  weft::runtime rt(how.options());
  notices seen;
  std::uint64_t shrunk = 0;
  for (how.seed = 1; shrunk < 3; ++how.seed) {
    const program p = generate(how.seed);
    if (size(p) < 60 || difference(rt, p, how, seen).empty()) continue;
    const program small = shrink(
        p, [&](const program& q) { return !difference(rt, q, how, seen).empty(); }, std::chrono::seconds(20));
    INFO(print(small));
    CHECK(size(small) <= 20);
    ++shrunk;
  }
}

// What the printed command runs: one seed, many times, with the options of the failure.
TEST_CASE("one program of all modes", "[.]") {
  setup how;
  how.test = one_program;
  how.seed = number("WEFT_TEST_ONLY", weft_test::seed());
  how.workers = static_cast<unsigned>(number("WEFT_TEST_WORKERS", 2));
  how.inlining = number("WEFT_TEST_INLINING", 1) != 0;
  how.surplus = static_cast<unsigned>(number("WEFT_TEST_SURPLUS", 4));
  how.cap = static_cast<unsigned>(number("WEFT_TEST_CAP", 1u << 14));
  how.spin = static_cast<unsigned>(number("WEFT_TEST_SPIN", 100));
  how.planted = number("WEFT_TEST_PLANT", 0) != 0;
  const std::uint64_t times = number("WEFT_TEST_REPEAT", 1000);
  last_words words;
  weft::runtime rt(how.options());
  const program p = generate(how.seed);
  notices seen;
  for (std::uint64_t i = 0; i < times; ++i) {
    words.now(how);
    const std::string text = difference(rt, p, how, seen);
    if (!text.empty()) fail_with(explain(rt, p, how, text));
  }
}
