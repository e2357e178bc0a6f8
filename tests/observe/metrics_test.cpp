// SPDX-License-Identifier: BSL-1.0
// Metrics: every counter is in the text, with its value; names of runtimes are escaped, and must differ.
#include "flow/runtimes.hpp"
#include "support/catch.hpp"

#include <weft/observe.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using weft::observe::open_metrics;
using weft::observe::runtime_metrics;
using weft_test::contains;

namespace {

constexpr std::size_t members = sizeof(weft::counters) / sizeof(std::uint64_t);

/// Counters of which each has another value.
weft::counters numbered() {
  std::array<std::uint64_t, members> values{};
  for (std::size_t i = 0; i < members; ++i) values[i] = 1000 + i;
  return std::bit_cast<weft::counters>(values);
}

runtime_metrics metrics_of(std::string_view name, const weft::counters& totals, unsigned workers) {
  runtime_metrics m;
  m.runtime = name;
  m.totals = totals;
  m.workers = workers;
  return m;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("every counter has one sample with its value") {
  const std::string text = open_metrics(metrics_of("", numbered(), 3));
  std::multiset<std::string> values;
  for (const std::string& line : lines_of(text))
    if (line[0] != '#') values.insert(line.substr(line.find(' ') + 1));
  std::multiset<std::string> expected{"3"};
  for (std::size_t i = 0; i < members; ++i) expected.insert(std::to_string(1000 + i));
  CHECK(values == expected);
  CHECK_THAT(text, contains("\nweft_steals_total 1003\n"));
  CHECK_THAT(text, contains("\nweft_wakes_total 1017\n"));
  CHECK_THAT(text, contains("\n# TYPE weft_stack_high_water_bytes gauge\n"
                            "# UNIT weft_stack_high_water_bytes bytes\n"
                            "# HELP weft_stack_high_water_bytes "));
  CHECK_THAT(text, contains("\nweft_stack_high_water_bytes 1019\n"));
  CHECK(lines_of(text).back() == "# EOF");
}

TEST_CASE("families are not divided, and samples of several runtimes have labels") {
  const std::string text = open_metrics({metrics_of("a", numbered(), 1), metrics_of("b", {}, 2)});
  CHECK_THAT(text, contains("# TYPE weft_deferred counter\n"
                            "# HELP weft_deferred Tasks that fork deferred.\n"
                            "weft_deferred_total{runtime=\"a\"} 1000\n"
                            "weft_deferred_total{runtime=\"b\"} 0\n"
                            "# TYPE weft_inlined counter\n"));
  CHECK_THAT(text, contains("weft_workers{runtime=\"a\"} 1\nweft_workers{runtime=\"b\"} 2\n# EOF\n"));
}

TEST_CASE("label values are escaped") {
  const auto written = [](std::string_view name) {
    std::string out;
    weft::observe::append_label_value(out, name);
    return out;
  };
  CHECK(written("plain") == "plain");
  CHECK(written("a\"b\\c\nd") == "a\\\"b\\\\c\\nd");
  CHECK(written("\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80") == "\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80");
  CHECK(written("x\xFFy\xC3") == "x\xEF\xBF\xBDy\xEF\xBF\xBD");
  CHECK_THAT(open_metrics(metrics_of("a\"b", {}, 1)), contains("weft_workers{runtime=\"a\\\"b\"} 1\n"));
}

TEST_CASE("two runtimes of one name are refused") {
  const std::vector<runtime_metrics> both{metrics_of("x", {}, 1), metrics_of("y", {}, 1),
                                          metrics_of("x", {}, 1)};
  CHECK_THROWS_AS(open_metrics(both), weft::error);
  try {
    open_metrics(both);
  } catch (const weft::error& e) {
    CHECK_THAT(std::string(e.what()), contains("'x'"));
  }
}

TEST_CASE("the metrics of a runtime are its counters") {
  weft::runtime rt({.workers = 2, .inlining = false});
  rt.run([] {
    for (int i = 0; i < 10; ++i) weft::fork([] {});
  });
  const auto deferred = rt.counters().deferred;
  REQUIRE(deferred >= 10);
  const std::string line = "weft_deferred_total " + std::to_string(deferred) + "\n";
  CHECK_THAT(open_metrics(rt), contains(line));
  CHECK_THAT(open_metrics(rt), contains("\nweft_workers 2\n"));
  CHECK_THAT(open_metrics({{rt, "the one"}}), contains("weft_workers{runtime=\"the one\"} 2\n"));
}
