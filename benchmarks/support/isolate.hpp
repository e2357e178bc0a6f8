// SPDX-License-Identifier: BSL-1.0
// Runs one measurement in a child process of its own.
#pragma once

#include "outcome.hpp"

#include <functional>
#include <string>

namespace weft_bench {

struct isolated {
  outcome result{};
  std::string error;       ///< empty: the run ended properly and `result` is set
  double cpu_seconds = 0;  ///< processor time of the child, start-up included
};

/// Calls `run` in a forked child and hands its outcome back.
///
/// So no rival's spinning threads, pinned masters or memory reach another's measurement; a library that can
/// be started only once per process can be measured with several numbers of workers; peak memory is exact;
/// and a rival that crashes or hangs (`limit` seconds) costs one line of the table. The caller must have no
/// threads.
isolated isolate(const std::function<outcome()>& run, unsigned limit = 600);

}  // namespace weft_bench
