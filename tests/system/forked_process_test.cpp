// SPDX-License-Identifier: BSL-1.0
// After POSIX fork an object knows that its process is another one.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/system/forked_process.hpp>

#include <cstdio>

using weft::sched::forked_process;

TEST_CASE("what was made before a fork is not of the child; what is made in the child is") {
  const forked_process before;
  CHECK(before.in_this_process());
  const auto child = weft_test::run_in_child([&] {
    const forked_process own;
    std::printf("parent's %d own %d\n", before.in_this_process(), own.in_this_process());
    std::fflush(stdout);
    const auto grandchild = weft_test::run_in_child([&] {
      const forked_process youngest;
      std::printf("%d %d %d", before.in_this_process(), own.in_this_process(), youngest.in_this_process());
    });
    std::printf("grandchild %s own %d\n", grandchild.output.c_str(), own.in_this_process());
  });
  CHECK(child.output == "parent's 0 own 1\ngrandchild 0 0 1 own 1\n");
  CHECK(child.exit_code == 0);
  CHECK(before.in_this_process());
  const forked_process after;
  CHECK(after.in_this_process());
}
