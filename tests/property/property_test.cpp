// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs give on the library what a sequential interpreter gives.
#include "batch.hpp"
#include "check.hpp"
#include "execute.hpp"
#include "generate.hpp"
#include "interpret.hpp"
#include "shrink.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"
#include "support/record.hpp"

#include <weft/weft.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

using namespace property;

namespace {

constexpr unsigned usual_programs = 8000;

std::string run_once(weft::runtime& rt, const setup& how, std::uint64_t& threw) {
  const program p = generate(how.seed);
  const std::string text = difference(rt, p, how);
  threw += interpret(p).exception != 0;
  return text.empty() ? text : explain(rt, p, how, text);
}

}  // namespace

TEST_CASE("random programs give what the serial program gives") {
  result r;
  std::uint64_t threw = 0;
  run_all(usual_programs, 0, r,
          [&threw](weft::runtime& rt, const setup& how) { return run_once(rt, how, threw); });
  std::printf(
      "%llu runs compared, %llu with an exception; deferred %llu, inlined %llu, steals %llu, parkings %llu, "
      "suspensions %llu, dropped %llu, promotions %llu, demotions %llu, capped %llu\n",
      static_cast<unsigned long long>(r.compared), static_cast<unsigned long long>(threw),
      static_cast<unsigned long long>(r.sum.deferred), static_cast<unsigned long long>(r.sum.inlined),
      static_cast<unsigned long long>(r.sum.steals), static_cast<unsigned long long>(r.sum.parkings),
      static_cast<unsigned long long>(r.sum.suspensions), static_cast<unsigned long long>(r.sum.dropped),
      static_cast<unsigned long long>(r.sum.promotions), static_cast<unsigned long long>(r.sum.demotions),
      static_cast<unsigned long long>(r.sum.capped));
  weft_test::figure("programs_compared", r.compared);
  CHECK(r.compared >= programs(usual_programs) * 6);
  CHECK(threw > 0);
  CHECK(r.sum.deferred > 0);
  CHECK(r.sum.inlined > 0);
  CHECK(r.sum.steals > 0);
  CHECK(r.sum.parkings > 0);
  CHECK(r.sum.capped > 0);
  CHECK(r.sum.promotions > 0);
  CHECK(r.sum.suspensions > 0);
  CHECK(r.sum.dropped > 0);
  for (const usage& u : launches()) {
    INFO("pattern '" << u.pattern << "'");
    CHECK(u.times > 0);
  }
}

TEST_CASE("random programs of several callers do not disturb each other") {
  constexpr unsigned callers = 4;
  const std::uint64_t each = programs(usual_programs) / 8 + 1;
  for (const unsigned workers : {2u, 4u}) {
    const setup options = options_for(65 * workers, {.workers = workers});
    weft::runtime rt(options.options());
    weft_test::record<std::string> failures;
    std::vector<std::thread> threads;
    for (unsigned c = 0; c < callers; ++c)
      threads.emplace_back([&, c] {
        setup how = options;
        for (std::uint64_t i = 0; i < each; ++i) {
          how.seed = weft_test::seed() + 1000000 * (c + 1) + i;
          const std::string text = difference(rt, generate(how.seed), how, false);
          if (!text.empty())
            failures.add(text + "\nwith other callers beside it; alone:\n  " + how.command());
        }
      });
    for (std::thread& t : threads) t.join();
    for (const std::string& f : failures.entries()) fail_with(f);
  }
}

TEST_CASE("generated programs are legal, varied, and the same for the same seed") {
  std::uint64_t threw = 0, caught = 0, tasks = 0, never = 0, known = 0, unknown = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const program p = generate(seed);
    REQUIRE(print(p) == print(generate(seed)));
    program again = p;
    legalise(again);
    REQUIRE(print(p) == print(again));
    expectation e;
    REQUIRE_NOTHROW(e = interpret(p));  // it throws if the program reads a value that is not determined
    threw += e.exception != 0;
    caught += static_cast<std::uint64_t>(e.caught);
    for (const runs r : e.tasks) {
      tasks += r == runs_once;
      never += r == runs_never;
    }
    for (std::size_t i = 0; i < p.objects.size(); ++i) ++(e.objects[i].known ? known : unknown);
  }
  std::printf(
      "2000 programs: %llu throw, %llu exceptions caught, %llu tasks, %llu must not run, %llu of %llu "
      "objects compared\n",
      static_cast<unsigned long long>(threw), static_cast<unsigned long long>(caught),
      static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(never),
      static_cast<unsigned long long>(known), static_cast<unsigned long long>(known + unknown));
  CHECK(threw > 100);
  CHECK(caught > 100);
  CHECK(tasks > 20000);
  CHECK(known > unknown);
}

TEST_CASE("a wrong oracle is noticed, shrunk, and repeated by the printed command") {
  setup how;
  how.workers = 2;
  how.planted = true;
  weft::runtime rt(how.options());
  std::string text;
  program p;
  for (how.seed = 1; text.empty(); ++how.seed) {
    p = generate(how.seed);
    if (size(p) < 100) continue;  // so that there is something to shrink
    text = difference(rt, p, how);
    if (!text.empty()) break;
  }
  const std::string report = explain(rt, p, how, text);
  INFO(report);
  const program small =
      shrink(p, [&](const program& q) { return !difference(rt, q, how).empty(); }, std::chrono::seconds(20));
  CHECK(size(small) <= 12);
  const std::size_t at = report.rfind("to repeat it:\n  ");
  REQUIRE(at != std::string::npos);
  std::string command = report.substr(at + 16);
  command.erase(command.find('\n'));
  std::string output;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) output.append(part, n);
  CHECK(pclose(pipe) != 0);
  CHECK_THAT(output, weft_test::contains("seed " + std::to_string(how.seed)));
  CHECK_THAT(output, weft_test::contains(text));
}

TEST_CASE("one program", "[.]") {
  std::uint64_t threw = 0;
  repeat_one([&threw](weft::runtime& rt, const setup& how) { return run_once(rt, how, threw); });
}
