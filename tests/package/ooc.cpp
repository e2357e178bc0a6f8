// SPDX-License-Identifier: BSL-1.0
// A program of somebody who reads files in tasks.
#include <weft/ooc.hpp>
#include <weft/version.hpp>

#include <cstdio>

int main() {
  const weft::ooc::io_queue queue;
  std::printf("weft %s reads files by %s\n", weft::version_string, queue.engine_name());
}
