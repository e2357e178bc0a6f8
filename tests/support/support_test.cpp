// SPDX-License-Identifier: BSL-1.0
// The shared helpers do what the tests that rely on them assume.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/environment.hpp"
#include "support/random.hpp"
#include "support/record.hpp"
#include "support/tracked.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

TEST_CASE("a child's end and output are reported") {
  const auto good = weft_test::run_in_child([] { std::puts("well"); });
  CHECK(good.exit_code == 0);
  CHECK(good.output == "well\n");

  const auto violation = weft_test::run_in_child([] {
    std::fputs("weft: bad\n", stderr);
    std::abort();
  });
  CHECK(violation.aborted());
  CHECK_THAT(violation.output, weft_test::contains("weft: bad"));

  const auto thrown = weft_test::run_in_child([] { throw std::runtime_error("ball"); });
  CHECK(thrown.exit_code == 99);
  CHECK_THAT(thrown.output, weft_test::contains("ball"));
}

TEST_CASE("an environment variable is set for a scope") {
  const weft_test::scoped_variable outer("WEFT_TEST_SUPPORT", "outer");
  {
    const weft_test::scoped_variable inner("WEFT_TEST_SUPPORT", nullptr);
    CHECK(std::getenv("WEFT_TEST_SUPPORT") == nullptr);
  }
  CHECK(std::string(std::getenv("WEFT_TEST_SUPPORT")) == "outer");
}

TEST_CASE("a tracked value counts, and fails when asked to") {
  using weft_test::tracked;
  tracked::reset();
  {
    tracked a(7);
    tracked b(a);
    tracked c(std::move(a));
    CHECK(b.value + c.value == 14);
    CHECK(tracked::alive == 3);
    CHECK(tracked::copies == 1);
    CHECK(tracked::moves == 1);
    tracked::until_failure = 1;
    tracked d(b);
    CHECK_THROWS_AS(tracked(b), weft_test::planted_failure);
    CHECK(tracked::alive == 4);
  }
  CHECK(tracked::alive == 0);
}

TEST_CASE("the random sequence is fixed by its seed") {
  weft_test::random r(0);
  CHECK(r() == 0xE220A8397B1DCDAFu);
  CHECK(r.below(1) == 0);
}

TEST_CASE("threads record, the main thread asserts") {
  weft_test::record<int> seen;
  std::thread([&] { seen.add(1); }).join();
  seen.add(2);
  CHECK(seen.entries() == std::vector<int>{1, 2});
}
