// SPDX-License-Identifier: BSL-1.0
// Races between tasks of one kernel thread: seen by Thread Sanitizer in the no-sync mode, and only there.
#include "context/strand.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <atomic>
#include <cstdlib>

using weft_test::contains;
using weft_test::strand;
namespace detail = weft::context::detail;

namespace {

int shared_value = 0;
std::atomic<int> handed_over{0};

[[gnu::noinline]] void write_shared() { ++shared_value; }

/// What a scheduler does around a task: acquire what came before, release what it did.
void write_in_order() {
  handed_over.load(std::memory_order_acquire);  // pairs with the release of the task before
  write_shared();
  handed_over.fetch_add(1, std::memory_order_release);
}

/// Two tasks, one after the other, on this kernel thread.
weft_test::child_result run_two(void (*body)()) {
  return weft_test::run_in_child([body] {
    strand one(body);
    strand two(body);
    one.run();
    two.run();
    std::exit(0);  // the sanitizer's exit status comes with the ordinary end of a process
  });
}

}  // namespace

TEST_CASE("two unordered contexts on one kernel thread race only in the no-sync mode", "[context]") {
  if constexpr (!detail::tsan_on) return;
  const auto report = run_two(write_shared);
  if constexpr (WEFT_RACES != 0) {
    CHECK(report.exit_code != 0);
    CHECK_THAT(report.output, contains("data race"));
    CHECK_THAT(report.output, contains("write_shared"));
  } else {
    CHECK(report.exit_code == 0);
    CHECK(report.output.empty());
  }
}

TEST_CASE("two ordered contexts on one kernel thread race in neither mode", "[context]") {
  if constexpr (!detail::tsan_on) return;
  const auto report = run_two(write_in_order);
  CHECK(report.exit_code == 0);
  CHECK(report.output.empty());
}
