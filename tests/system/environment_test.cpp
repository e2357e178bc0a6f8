// SPDX-License-Identifier: BSL-1.0
// Environment variables: values that make sense, those that do not, and names that nobody knows.
#include "support/environment.hpp"

#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/system/environment.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace base = weft::base;
using weft_test::contains;
using weft_test::scoped_variable;

namespace {

/// The text of the option_error that `f` throws; empty if it throws none.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const weft::option_error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("whole numbers are read strictly", "[base]") {
  CHECK(base::whole_number("0") == 0u);
  CHECK(base::whole_number("007") == 7u);
  CHECK(base::whole_number("18446744073709551615") == UINT64_MAX);
  for (const char* text : {"", " ", "-1", "+1", " 1", "1 ", "1.0", "0x10", "1e3", "18446744073709551616",
                           "99999999999999999999999", "ten"}) {
    INFO("'" << text << "'");
    CHECK_FALSE(base::whole_number(text).has_value());
  }
}

TEST_CASE("a variable that is not set gives nothing", "[base]") {
  const scoped_variable none("WEFT_WORKERS", nullptr);
  CHECK_FALSE(base::environment_unsigned("WEFT_WORKERS", 0, 10).has_value());
  CHECK_FALSE(base::environment_bytes("WEFT_WORKERS", 0, 10).has_value());
  CHECK_FALSE(base::environment_bool("WEFT_WORKERS").has_value());
  CHECK_FALSE(base::environment_microseconds("WEFT_WORKERS", {}, std::chrono::microseconds(10)).has_value());
}

TEST_CASE("numbers of the environment respect their range", "[base]") {
  const auto read = [](const char* text) {
    const scoped_variable set("WEFT_WORKERS", text);
    return base::environment_unsigned("WEFT_WORKERS", 1, 1024);
  };
  CHECK(read("1") == 1u);
  CHECK(read("1024") == 1024u);
  for (const char* text : {"0", "1025", "-1", "", "many", "4 ", "0x4", "99999999999999999999"}) {
    const std::string said = refusal([&] { read(text); });
    CHECK(said == std::string("weft: environment variable WEFT_WORKERS='") + text +
                      "' is invalid; expected a whole number from 1 to 1024");
  }
}

TEST_CASE("bytes of the environment know k and m", "[base]") {
  const auto read = [](const char* text) {
    const scoped_variable set("WEFT_STACK_SIZE", text);
    return base::environment_bytes("WEFT_STACK_SIZE", 32768, std::size_t{1} << 40);
  };
  CHECK(read("40000") == 40000u);
  CHECK(read("64k") == 65536u);
  CHECK(read("64K") == 65536u);
  CHECK(read("2m") == 2097152u);
  CHECK(read("2M") == 2097152u);
  for (const char* text : {"31k", "", "k", "1g", "64kb", "64 k", "-64k", "1.5m", "2000000m",
                           "99999999999999999999k", "18446744073709551615m"}) {
    const std::string said = refusal([&] { read(text); });
    CHECK_THAT(said, contains(std::string("WEFT_STACK_SIZE='") + text + "'"));
    CHECK_THAT(said, contains("from 32768 to 1099511627776"));
  }
}

TEST_CASE("switches of the environment are 0 or 1", "[base]") {
  const auto read = [](const char* text) {
    const scoped_variable set("WEFT_INLINING", text);
    return base::environment_bool("WEFT_INLINING");
  };
  CHECK(read("0") == false);
  CHECK(read("1") == true);
  for (const char* text : {"", "2", "true", "on", "01"})
    CHECK_THAT(refusal([&] { read(text); }), contains("WEFT_INLINING") && contains("expected 0 or 1"));
}

TEST_CASE("times of the environment are microseconds", "[base]") {
  using std::chrono::microseconds;
  const auto read = [](const char* text) {
    const scoped_variable set("WEFT_SPIN_US", text);
    return base::environment_microseconds("WEFT_SPIN_US", microseconds(0), std::chrono::seconds(1));
  };
  CHECK(read("0") == microseconds(0));
  CHECK(read("1000000") == microseconds(1'000'000));
  for (const char* text : {"1000001", "-5", "5us", ""})
    CHECK_THAT(refusal([&] { read(text); }), contains("WEFT_SPIN_US") && contains("from 0 to 1000000"));
}

TEST_CASE("a misspelt variable is refused, with the names that exist", "[base]") {
  CHECK_NOTHROW(base::check_environment());
  for (const char* name : {"WEFT_FOO", "WEFT_WORKER", "WEFT_TESTS", "WEFT_"}) {
    const scoped_variable set(name, "1");
    const std::string said = refusal(base::check_environment);
    CHECK_THAT(said, contains(std::string("weft: unknown environment variable ") + name +
                              "; known are WEFT_WORKERS,"));
    for (const base::environment_variable& known : base::environment_table)
      CHECK_THAT(said, contains(std::string(known.name)));
  }
  const scoped_variable foreign("WEFTISH", "1");
  const scoped_variable of_tests("WEFT_TEST_ANYTHING", "1");
  const scoped_variable known("WEFT_WORKERS",
                              "nonsense");  // the names only: values are checked where they are read
  CHECK_NOTHROW(base::check_environment());
}

TEST_CASE("an environment that is not there has nothing to refuse", "[base]") {
  const auto report = weft_test::run_in_child([] {
    clearenv();
    if (environ != nullptr) std::puts("still there");
    base::check_environment();
    if (base::environment_unsigned("WEFT_WORKERS", 0, 10)) std::puts("a number");
  });
  CHECK(report.exit_code == 0);
  CHECK(report.output.empty());
}

TEST_CASE("reading a variable that the table lacks is a contract violation", "[base]") {
  const auto report = weft_test::run_in_child([] { base::environment_bool("WEFT_FORGOTTEN"); });
  CHECK(report.aborted());
  CHECK_THAT(report.output,
             contains("weft: environment variable WEFT_FORGOTTEN is missing in environment_table"));
}
