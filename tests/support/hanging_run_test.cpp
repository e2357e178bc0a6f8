// SPDX-License-Identifier: BSL-1.0
// Negative control of the watchdog: a test that hangs, since an event does not come.
#include "support/catch.hpp"

#include <weft/weft.hpp>

#include <optional>

TEST_CASE("waiting for ever") {
  weft::runtime rt({.workers = 2});
  std::optional<weft::completion> done;
  rt.run(
      [&] { weft::fork({.name = "held", .event = true}, [&] { done.emplace(weft::this_task::hold()); }); });
}
