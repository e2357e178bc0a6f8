// SPDX-License-Identifier: BSL-1.0
// Negative control of the watchdog: a program that never ends.
#include "support/watchdog.hpp"

#include <unistd.h>

#include <cstdio>

int main() {
  weft_test::on_hang([] { std::fputs("state of the sleeper\n", stderr); });
  weft_test::now_running("sleeping beauty");
  weft_test::start_watchdog();
  for (;;) pause();
}
