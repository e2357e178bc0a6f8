// SPDX-License-Identifier: BSL-1.0
// Options: what is refused, in whose name, and what the environment overrides.
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/sched/checked_options.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

using std::chrono::microseconds;
using std::chrono::milliseconds;
using weft::pinning;
using weft::runtime_options;
using weft::sched::checked_options;
using weft::sched::option_limits;
using weft_test::contains;
using weft_test::scoped_variable;

namespace {

/// None of the library's variables is set while this lives, whatever the tests were called with.
struct clean_environment {
  std::deque<scoped_variable> hidden;
  clean_environment() {
    for (const auto& v : weft::base::environment_table)
      hidden.emplace_back(std::string(v.name).c_str(), nullptr);
  }
};

/// The text of the option_error for these options; empty if there is none.
std::string refusal(const runtime_options& o) {
  try {
    checked_options(o);
  } catch (const weft::option_error& e) {
    return e.what();
  }
  return {};
}

/// The text of the option_error for the default options with this variable.
std::string refusal(const char* variable, const char* text) {
  const scoped_variable set(variable, text);
  return refusal(runtime_options{});
}

runtime_options with(const char* variable, const char* text, const runtime_options& o = {}) {
  const scoped_variable set(variable, text);
  return checked_options(o);
}

}  // namespace

TEST_CASE("the defaults make sense, and zero workers means as many as usable") {
  const clean_environment clean;
  const runtime_options o = checked_options({});
  CHECK(o.workers == weft::base::usable_cpus());
  CHECK(o.workers >= 1);
  CHECK(o.stack_size == std::size_t{1} << 20);
  CHECK(o.inlining);
  CHECK(o.surplus == 4);
  CHECK(o.cap == 1u << 14);
  CHECK(o.versions == 4);
  CHECK(o.spin == microseconds(100));
  CHECK(o.stall == milliseconds(0));
  CHECK(o.trace.empty());
  CHECK(o.trace_mb == 64);
  CHECK(o.pinning.processors().empty());
}

TEST_CASE("options that make sense are kept, up to their limits") {
  const clean_environment clean;
  const runtime_options least = checked_options({.workers = 1,
                                                 .stack_size = option_limits::least_stack,
                                                 .inlining = false,
                                                 .surplus = 0,
                                                 .cap = 1,
                                                 .versions = 1,
                                                 .spin = microseconds(0)});
  CHECK(least.workers == 1);
  CHECK(least.stack_size == option_limits::least_stack);
  CHECK_FALSE(least.inlining);
  CHECK(least.surplus == 0);
  CHECK(least.cap == 1);
  CHECK(least.versions == 1);
  CHECK(least.spin == microseconds(0));
  const runtime_options most = checked_options({.workers = option_limits::workers,
                                                .stack_size = option_limits::most_stack,
                                                .surplus = option_limits::surplus,
                                                .cap = option_limits::cap,
                                                .versions = option_limits::versions,
                                                .spin = option_limits::spin,
                                                .stall = option_limits::stall});
  CHECK(most.workers == option_limits::workers);
  CHECK(most.stack_size == option_limits::most_stack);
  CHECK(most.surplus == option_limits::surplus);
  CHECK(most.cap == option_limits::cap);
  CHECK(most.versions == option_limits::versions);
  CHECK(most.spin == option_limits::spin);
  CHECK(most.stall == option_limits::stall);
}

TEST_CASE("absurd members are refused by their name") {
  const clean_environment clean;
  struct refused {
    runtime_options options;
    const char* member;
  };
  const refused all[] = {
      {{.workers = option_limits::workers + 1}, "workers"},
      {{.workers = static_cast<unsigned>(-1)}, "workers"},
      {{.stack_size = 0}, "stack_size"},
      {{.stack_size = 1}, "stack_size"},
      {{.stack_size = option_limits::least_stack - 1}, "stack_size"},
      {{.stack_size = option_limits::most_stack + 1}, "stack_size"},
      {{.stack_size = SIZE_MAX}, "stack_size"},
      {{.surplus = option_limits::surplus + 1}, "surplus"},
      {{.surplus = static_cast<unsigned>(-1)}, "surplus"},
      {{.cap = 0}, "cap"},
      {{.cap = option_limits::cap + 1}, "cap"},
      {{.cap = static_cast<unsigned>(-1)}, "cap"},
      {{.versions = 0}, "versions"},
      {{.versions = option_limits::versions + 1}, "versions"},
      {{.spin = microseconds(-1)}, "spin"},
      {{.spin = microseconds::min()}, "spin"},
      {{.spin = option_limits::spin + microseconds(1)}, "spin"},
      {{.spin = microseconds::max()}, "spin"},
      {{.stall = milliseconds(-1)}, "stall"},
      {{.stall = option_limits::stall + milliseconds(1)}, "stall"},
      {{.stall = milliseconds::max()}, "stall"},
      {{.trace_mb = 0}, "trace_mb"},
      {{.trace_mb = option_limits::trace_mb + 1}, "trace_mb"},
  };
  for (const refused& r : all) {
    const std::string said = refusal(r.options);
    INFO(r.member << ": " << said);
    CHECK(said.starts_with(std::string("weft: runtime_options::") + r.member + " is invalid; expected "));
    CHECK(said.find_first_of("0123456789") != std::string::npos);  // it says what would make sense
  }
}

TEST_CASE("each variable overrides its member") {
  const clean_environment clean;
  const runtime_options other{.workers = 7,
                              .stack_size = 1 << 18,
                              .inlining = true,
                              .surplus = 9,
                              .cap = 77,
                              .versions = 6,
                              .spin = microseconds(50),
                              .stall = milliseconds(60),
                              .trace = "kept.json",
                              .trace_mb = 5};
  CHECK(with("WEFT_WORKERS", "3", other).workers == 3);
  CHECK(with("WEFT_WORKERS", "0", other).workers == weft::base::usable_cpus());
  CHECK(with("WEFT_STACK_SIZE", "300000", other).stack_size == 300000);
  CHECK(with("WEFT_STACK_SIZE", "128k", other).stack_size == 128 * 1024);
  CHECK(with("WEFT_STACK_SIZE", "2m", other).stack_size == 2 * 1024 * 1024);
  CHECK_FALSE(with("WEFT_INLINING", "0", other).inlining);
  CHECK(with("WEFT_INLINING", "1", {.inlining = false}).inlining);
  CHECK(with("WEFT_SURPLUS", "0", other).surplus == 0);
  CHECK(with("WEFT_SURPLUS", "12", other).surplus == 12);
  CHECK(with("WEFT_CAP", "1", other).cap == 1);
  CHECK(with("WEFT_CAP", "50", other).cap == 50);
  CHECK(with("WEFT_VERSIONS", "1", other).versions == 1);
  CHECK(with("WEFT_VERSIONS", "9", other).versions == 9);
  CHECK(with("WEFT_SPIN_US", "0", other).spin == microseconds(0));
  CHECK(with("WEFT_SPIN_US", "700", other).spin == microseconds(700));
  CHECK(with("WEFT_STALL_MS", "0", other).stall == milliseconds(0));
  CHECK(with("WEFT_STALL_MS", "700", other).stall == milliseconds(700));
  CHECK(with("WEFT_TRACE", "other.json", other).trace == "other.json");
  CHECK(with("WEFT_TRACE", "", other).trace.empty());
  CHECK(with("WEFT_TRACE_MB", "1", other).trace_mb == 1);
  CHECK(with("WEFT_TRACE_MB", "65536", other).trace_mb == 65536);
}

TEST_CASE("a variable overrides its own member only") {
  const clean_environment clean;
  const runtime_options other{.workers = 7,
                              .stack_size = 1 << 18,
                              .inlining = false,
                              .surplus = 9,
                              .cap = 77,
                              .versions = 6,
                              .spin = microseconds(50),
                              .stall = milliseconds(60),
                              .trace = "kept.json",
                              .trace_mb = 5};
  const char* const settings[][2] = {
      {"WEFT_WORKERS", "3"}, {"WEFT_STACK_SIZE", "300000"}, {"WEFT_INLINING", "1"}, {"WEFT_SURPLUS", "3"},
      {"WEFT_CAP", "3"},     {"WEFT_SPIN_US", "3"},         {"WEFT_VERSIONS", "3"}, {"WEFT_STALL_MS", "3"},
      {"WEFT_TRACE", "3"},   {"WEFT_TRACE_MB", "3"}};
  for (const auto& [variable, text] : settings) {
    const runtime_options o = with(variable, text, other);
    const int changed = (o.workers != other.workers) + (o.stack_size != other.stack_size) +
                        (o.inlining != other.inlining) + (o.surplus != other.surplus) + (o.cap != other.cap) +
                        (o.versions != other.versions) + (o.spin != other.spin) + (o.stall != other.stall) +
                        (o.trace != other.trace) + (o.trace_mb != other.trace_mb);
    INFO(variable);
    CHECK(changed == 1);
  }
}

TEST_CASE("a variable may heal an absurd member") {
  const clean_environment clean;
  CHECK(with("WEFT_WORKERS", "2", {.workers = 1u << 31}).workers == 2);
  CHECK(with("WEFT_STACK_SIZE", "1m", {.stack_size = 0}).stack_size == 1 << 20);
  CHECK(with("WEFT_SURPLUS", "1", {.surplus = 1u << 31}).surplus == 1);
  CHECK(with("WEFT_CAP", "5", {.cap = 0}).cap == 5);
  CHECK(with("WEFT_VERSIONS", "5", {.versions = 0}).versions == 5);
  CHECK(with("WEFT_SPIN_US", "1", {.spin = microseconds(-1)}).spin == microseconds(1));
  CHECK(with("WEFT_STALL_MS", "1", {.stall = milliseconds(-1)}).stall == milliseconds(1));
  CHECK(with("WEFT_TRACE_MB", "1", {.trace_mb = 0}).trace_mb == 1);
}

TEST_CASE("absurd variables are refused by their name") {
  const clean_environment clean;
  const char* const never[] = {"", " ", "-1", "+1", "1.5", "0x10", "many", "1 ", "99999999999999999999999"};
  for (const auto& v : weft::base::environment_table)
    for (const char* text : never) {
      const std::string name(v.name);
      if (name == "WEFT_TRACE") continue;  // any path
      const std::string said = refusal(name.c_str(), text);
      INFO(name << "='" << text << "': " << said);
      CHECK_THAT(said, contains("weft: environment variable " + name + "='" + text + "' is invalid"));
    }
  const char* const beyond[][2] = {{"WEFT_WORKERS", "4097"},        {"WEFT_STACK_SIZE", "0"},
                                   {"WEFT_STACK_SIZE", "1k"},       {"WEFT_STACK_SIZE", "5000m"},
                                   {"WEFT_INLINING", "2"},          {"WEFT_INLINING", "yes"},
                                   {"WEFT_SURPLUS", "1048577"},     {"WEFT_CAP", "0"},
                                   {"WEFT_VERSIONS", "0"},          {"WEFT_VERSIONS", "1025"},
                                   {"WEFT_CAP", "1073741825"},      {"WEFT_SPIN_US", "10000001"},
                                   {"WEFT_WORKERS", "4294967297"},  {"WEFT_SURPLUS", "4294967296"},
                                   {"WEFT_SPIN_US", "4294967296"},  {"WEFT_STACK_SIZE", "99999999999999999m"},
                                   {"WEFT_STALL_MS", "1000000001"}, {"WEFT_TRACE_MB", "0"},
                                   {"WEFT_TRACE_MB", "65537"}};
  for (const auto& [variable, text] : beyond) {
    const std::string said = refusal(variable, text);
    INFO(variable << "='" << text << "': " << said);
    CHECK_THAT(said, contains(std::string(variable) + "='" + text + "' is invalid; expected"));
  }
}

TEST_CASE("an unknown variable is refused whatever the options are") {
  const clean_environment clean;
  for (const char* name : {"WEFT_WORKER", "WEFT_THREADS", "WEFT_STACKSIZE", "WEFT_"})
    CHECK_THAT(refusal(name, "1"), contains(std::string("weft: unknown environment variable ") + name + ";"));
  CHECK(refusal("WEFT_TEST_SOMETHING", "1").empty());
}

TEST_CASE("pinning names processors of the affinity mask, or is refused") {
  const clean_environment clean;
  const std::vector<unsigned> allowed = weft::base::affinity_mask();
  REQUIRE_FALSE(allowed.empty());
  const unsigned beyond = allowed.back() + 1;
  const auto processors = [](const runtime_options& o) { return o.pinning.processors(); };
  const auto sorted = [](std::vector<unsigned> all) {
    std::sort(all.begin(), all.end());
    return all;
  };

  CHECK(processors(checked_options({.pinning = {}})).empty());
  CHECK(sorted(processors(checked_options({.pinning = pinning::compact}))) == allowed);
  CHECK(sorted(processors(checked_options({.pinning = pinning::scatter}))) == allowed);
  CHECK(processors(checked_options({.pinning = pinning(allowed)})) == allowed);
  // In braces, too, a pattern is no list.
  CHECK(pinning{pinning::compact}.which() == pinning::compact);
  CHECK(checked_options({.pinning = {pinning::none}}).pinning.processors().empty());
  CHECK(pinning{1, 0}.processors() == std::vector<unsigned>{1, 0});

  // The number of workers that nobody has given is that of the list, if the quota pays for it.
  const auto listed = checked_options({.pinning = {allowed[0], allowed[0], allowed[0]}});
  CHECK(listed.workers == std::min(3u, weft::base::quota_cpus().value_or(3)));
  CHECK(checked_options({.workers = 2, .pinning = {allowed[0]}}).workers == 2);

  const std::string one = std::to_string(allowed[0]);
  CHECK(processors(with("WEFT_PINNING", "none", {.pinning = pinning::compact})).empty());
  CHECK(sorted(processors(with("WEFT_PINNING", "compact"))) == allowed);
  CHECK(sorted(processors(with("WEFT_PINNING", "scatter"))) == allowed);
  CHECK(processors(with("WEFT_PINNING", (one + "," + one).c_str(), {.pinning = {beyond}})) ==
        std::vector{allowed[0], allowed[0]});
  CHECK(with("WEFT_PINNING", one.c_str()).workers == 1);

  const std::string none_of_them = "expected processors that this process may use, " +
                                   weft::base::to_text(allowed) + "; " + std::to_string(beyond) +
                                   " is none of them";
  CHECK(refusal({.pinning = {allowed[0], beyond}}) ==
        "weft: runtime_options::pinning is invalid; " + none_of_them);
  const std::string text = one + "," + std::to_string(beyond);
  CHECK(refusal("WEFT_PINNING", text.c_str()) ==
        "weft: environment variable WEFT_PINNING='" + text + "' is invalid; " + none_of_them);
  const std::string empty = "weft: runtime_options::pinning is invalid; expected from 1 to 4096 processors";
  CHECK(refusal({.pinning = pinning(std::vector<unsigned>{})}) == empty);
  CHECK(refusal({.pinning = pinning(std::vector<unsigned>(4097, allowed[0]))}) == empty);
  for (const char* nonsense : {"Compact", "0-", "-0", "0,,1", "0,", ",0", "1-0", "0;1", "0-70000", "70000"})
    CHECK_THAT(refusal("WEFT_PINNING", nonsense),
               contains("is invalid; expected none, compact, scatter, or processors such as 0-3,8"));
}

TEST_CASE("an option_error is an error of the library") {
  const clean_environment clean;
  CHECK_THROWS_AS(checked_options({.stack_size = 1}), weft::error);
  CHECK_THROWS_AS(checked_options({.stack_size = 1}), std::runtime_error);
}
