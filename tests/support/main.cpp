// SPDX-License-Identifier: BSL-1.0
// The main of every Catch2 executable: it names the running test case to the watchdog.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_NO_POSIX_SIGNALS  // a stack overflow and an abort belong to the library's own handlers
#include <catch2/catch.hpp>
#endif

#include "support/watchdog.hpp"

namespace {
#if __has_include(<catch2/catch_session.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

struct name_listener : listener_base {
  using listener_base::listener_base;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    weft_test::now_running(info.name.c_str());
  }
};
CATCH_REGISTER_LISTENER(name_listener)
}  // namespace

int main(int argc, char** argv) {
  weft_test::start_watchdog();
  return Catch::Session().run(argc, argv);
}
