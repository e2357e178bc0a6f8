// SPDX-License-Identifier: BSL-1.0
// Checked builds: a right on a result that was taken before the result was lost is worth nothing, and who
// hands it on is stopped.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <functional>
#include <utility>
#include <vector>

using weft_test::contains;
using weft_test::on_each_runtime;

static_assert(WEFT_CHECKED);

namespace {

/// Waits, and catches what the children throw.
void deal_with_failure() {
  try {
    weft::sync();
  } catch (int) {
  }
}

const char* const sentence =
    "is given a right on the result of task 'producer', which failed or was dropped: there is no value\n";

/// Checks that the program stops, and says so, where `give` delegates what `take` took from the result of a
/// task that fails.
template <class Take, class Give>
void check_stopped(Take take, Give give, const char* says = sentence) {
  for (const auto& options :
       {weft_test::alone_and_inlining(), weft_test::alone_and_deferring(), weft_test::two_and_deferring()}) {
    const auto child = weft_test::run_in_child([&] {
      weft::runtime rt(options);
      rt.run([&] {
        auto r = weft::fork({.name = "producer"}, []() -> int { throw 1; });
        auto right = take(r);
        deal_with_failure();
        weft::fork([] {});
        weft::sync();  // what an earlier one found is not forgotten
        give(rt, std::move(right));
      });
    });
    INFO("workers " << options.workers << ", inlining " << options.inlining << ": " << child.output);
    CHECK(child.aborted());
    CHECK_THAT(child.output, contains(says));
  }
}

}  // namespace

TEST_CASE("a right that was taken before its result was lost stops the program when it is used") {
  using read = weft::read<int>;
  using update = weft::update<int>;
  check_stopped([](auto& r) { return weft::read(r); },
                [](weft::runtime&, read right) { weft::fork([](const int&) {}, right); });
  check_stopped([](auto& r) { return weft::update(r); },
                [](weft::runtime&, update right) { weft::fork([](int&) {}, right); });
  check_stopped(
      [](auto& r) { return weft::weak_read(r); },
      [](weft::runtime&, weft::weak_read<int> right) { weft::fork([](weft::weak_read<int>) {}, right); });
  check_stopped([](auto& r) { return std::vector<read>{r}; },
                [](weft::runtime&, std::vector<read> list) {
                  weft::fork([](const std::vector<read>&) {}, std::move(list));
                });
  check_stopped([](auto& r) { return weft::reduce(r, std::plus<>{}); },
                [](weft::runtime&, weft::reduce<int, std::plus<>> right) { weft::fork([](auto) {}, right); });
  check_stopped([](auto& r) { return weft::read(r); },
                [](weft::runtime&, read right) { weft::fork_for(0, 3, [](int, const int&) {}, right); });
  check_stopped([](auto& r) { return weft::read(r); },
                [](weft::runtime& rt, read right) { rt.run([](const int&) {}, right); });
}

TEST_CASE("a right that is taken from a lost result stops the program as without checks") {
  check_stopped(
      [](auto& r) { return &r; },
      [](weft::runtime&, auto* r) { weft::fork([](const int&) {}, weft::read(*r)); },
      "delegates the right to read the result of a task that failed or was dropped: there is no value\n");
}

TEST_CASE("a lost result is forgotten with its handle, with its body, and when it gets a value") {
  on_each_runtime([](weft::runtime& rt) {
    int sum = 0;
    rt.run([&] {
      for (int i = 0; i < 20; ++i) {
        {
          const auto r = weft::fork([]() -> int { throw 1; });
          deal_with_failure();
        }
        weft::shared<int> in_its_place(1);
        weft::fork([&](const int& v) { sum += v; }, weft::read(in_its_place));
        weft::sync();
      }
      for (int i = 0; i < 20; ++i) {
        weft::fork([] {
          const auto r = weft::fork([]() -> int { throw 1; });
          deal_with_failure();
        });
        weft::sync();
        weft::shared<int> in_its_place(1);
        weft::fork([&](const int& v) { sum += v; }, weft::read(in_its_place));
        weft::sync();
      }
      auto r = weft::fork([]() -> int { throw 1; });
      deal_with_failure();
      const weft::update right(r);
      weft::fork([](int& v) { v = 1; }, right);
      weft::fork([&](const int& v) { sum += v; }, weft::read(r));
      weft::sync();
      weft::fork([&](const int& v) { sum += v; }, weft::read(right));
    });
    CHECK(sum == 42);
  });
}
