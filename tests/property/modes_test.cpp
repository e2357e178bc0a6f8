// SPDX-License-Identifier: BSL-1.0
// Random programs over all access modes give on the library what a sequential interpreter gives.
#include "batch.hpp"
#include "modes_check.hpp"
#include "support/catch.hpp"
#include "support/figure.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

using property::expectation;
using property::programs;
using property::repeat_one;
using property::result;
using property::run_all;
using property::runs;
using property::setup;
using namespace property::modes;

namespace {

constexpr unsigned usual_programs = 6000;

setup of_this_test() {
  setup how;
  how.test = "one program of all modes";
  return how;
}

/// What has happened beside the library's counters.
struct noticed {
  std::uint64_t threw = 0;
  notices seen{};
};

std::string run_once(weft::runtime& rt, const setup& how, noticed& n) {
  const program p = generate(how.seed);
  const std::string text = difference(rt, p, how, n.seen);
  n.threw += interpret(p).exception != 0;
  return text.empty() ? text : explain(rt, p, how, text);
}

}  // namespace

TEST_CASE("random programs over all access modes give what the serial program gives") {
  result r;
  noticed n;
  run_all(
      usual_programs, 32, r, [&n](weft::runtime& rt, const setup& how) { return run_once(rt, how, n); },
      of_this_test());
  const auto print = [](const char* what, std::uint64_t times) {
    std::printf("%s %llu\n", what, static_cast<unsigned long long>(times));
  };
  print("runs compared", r.compared);
  print("with an exception", n.threw);
  print("contributors met another", n.seen.together);
  print("deferred", r.sum.deferred);
  print("steals", r.sum.steals);
  print("promotions", r.sum.promotions);
  print("folds", r.sum.folds);
  print("replayed", r.sum.replayed);
  print("renames", r.sum.renames);
  print("demotions", r.sum.demotions);
  print("capped", r.sum.capped);
  print("divisions of loops", r.sum.divisions);
  print("parkings", r.sum.parkings);
  print("suspensions", r.sum.suspensions);
  print("dropped", r.sum.dropped);
  weft_test::figure("programs_compared", r.compared);
  CHECK(r.compared >= programs(usual_programs) * 6);
  CHECK(n.threw > 0);
  CHECK(n.seen.together > 0);  // so some contributions were kept apart
  CHECK(r.sum.deferred > 0);
  CHECK(r.sum.steals > 0);
  CHECK(r.sum.promotions > 0);
  CHECK(r.sum.folds > 0);
  CHECK(r.sum.replayed > 0);
  CHECK(r.sum.renames > 0);
  CHECK(r.sum.capped > 0);
  CHECK(r.sum.divisions > 0);
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

TEST_CASE("one program of all modes", "[.]") {
  noticed n;
  repeat_one([&n](weft::runtime& rt, const setup& how) { return run_once(rt, how, n); }, of_this_test());
}
