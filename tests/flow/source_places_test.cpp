// SPDX-License-Identifier: BSL-1.0
// Checked builds with debug information: a broken contract is reported with the lines that broke it.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <cstdlib>
#include <optional>
#include <regex>
#include <string>

using weft_test::contains;

static_assert(WEFT_CHECKED);

namespace {

const weft::task_options child{.name = "child"};

/// How a report names a line of this file, without its directory: which that is depends on how the compiler
/// was called.
std::string place(const char* what, int line) {
  return std::string("weft:   ") + what + " source_places_test.cpp:" + std::to_string(line) + "\n";
}

/// Runs `work` as the first task in a child process, which it must end.
template <class F>
std::string report_of(F work) {
  const auto end = weft_test::run_in_child([&] {
    weft::runtime rt(weft_test::alone_and_inlining());
    rt.run(work);
  });
  CHECK(end.aborted());
  return end.output;
}
/// Checks that the text ends so.
void check_report(const std::string& text, const std::string& sentence, const std::string& places) {
  INFO(text);
  static const std::regex path("[^ \n]*/source_places_test\\.cpp");
  CHECK_THAT(std::regex_replace(text, path, "source_places_test.cpp"), contains(sentence + "\n" + places));
}

}  // namespace

TEST_CASE("a use that comes too early is reported with its line and that of the fork before it") {
  constexpr int line = __LINE__;
  const auto text = report_of([] {
    weft::shared<long> x(0L);
    weft::fork([](long& v) { ++v; }, weft::update(x));
    std::printf("%ld", x.get());
  });
  check_report(text, "call weft::sync() first", place("at", line + 4) + place("delegated at", line + 3));
}

TEST_CASE("so is one through a parameter, in a task of another") {
  constexpr int line = __LINE__;
  const auto text = report_of([] {
    weft::shared<long> x(0L);
    const auto middle = [](weft::update<long> v) {
      weft::fork(child, [](weft::update<long> w) { *w = 1; }, v);
      *v += 1;
    };
    weft::fork(middle, x);
  });
  check_report(text, "to task 'child'; call weft::sync() first",
               place("at", line + 5) + place("delegated at", line + 4));
}

TEST_CASE("a right that outlives its task, and rights that contradict each other") {
  constexpr int line = __LINE__;
  const auto late = report_of([] {
    std::optional<weft::update<long>> kept;
    weft::shared<long> x(0L);
    weft::fork([&](weft::update<long> v) { kept.emplace(v); }, x);
    weft::sync();
    **kept = 3;
  });
  check_report(late, "after that has ended; rights must not be kept", place("at", line + 6));

  const auto both = report_of([] {
    weft::shared<long> x(0L);
    weft::fork([](long&, const long&) {}, weft::write(x), weft::read(x));
  });
  check_report(both, "give it one right that allows all it does", place("at", line + 12));
}

TEST_CASE("calls in the wrong place") {
  constexpr int line = __LINE__;
  const auto end = weft_test::run_in_child([] {
    weft::runtime rt;
    weft::fork([] {});
  });
  CHECK(end.aborted());
  check_report(end.output, "pass the first task to runtime::run", place("at", line + 3));
}

TEST_CASE("without the command that reads debug information there is the sentence alone") {
  const auto text = report_of([] {
    ::setenv("PATH", "/nowhere", 1);
    weft::shared<long> x(0L);
    weft::fork([](long& v) { ++v; }, weft::update(x));
    std::printf("%ld", x.get());
  });
  INFO(text);
  CHECK_THAT(text, contains("call weft::sync() first\n"));
  CHECK_THAT(text, !contains("weft:   "));
}
