// SPDX-License-Identifier: BSL-1.0
// The options of a runtime, in one table with the environment variables that override them.
#pragma once

#include <weft/base/config.hpp>

#include <chrono>
#include <cstddef>

namespace weft::inline WEFT_ABI {

/// Options of a runtime. Each member is overridden by the environment variable named beside it.
struct runtime_options {
  unsigned workers = 0;  ///< WEFT_WORKERS: kernel threads; 0: what affinity mask and CPU quota allow
  std::size_t stack_size = std::size_t{1} << 20;  ///< WEFT_STACK_SIZE: bytes of each context's stack
  bool inlining = true;                           ///< WEFT_INLINING: whether fork may run a task at once
  unsigned surplus = 4;  ///< WEFT_SURPLUS: stealable closures a worker keeps (at least 1 unless it is alone)
                         ///< before it runs tasks inside fork
  unsigned cap = 1u << 14;              ///< WEFT_CAP: tasks that a strand keeps before fork runs some of them
  unsigned versions = 4;                ///< WEFT_VERSIONS: most versions of one object; 1: none is renamed
  std::chrono::microseconds spin{100};  ///< WEFT_SPIN_US: how long an idle worker searches before it sleeps
  std::chrono::milliseconds stall{0};   ///< WEFT_STALL_MS: after how long without progress a run is described
                                        ///< on the standard error stream; 0: never
};

}  // namespace weft::inline WEFT_ABI
