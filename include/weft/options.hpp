// SPDX-License-Identifier: BSL-1.0
// The options of a runtime, in one table with the environment variables that override them.
#pragma once

#include <weft/base/config.hpp>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI {

/// Which processors the workers of a runtime run on: a pattern, or processors by their numbers, which worker
/// 0, 1, ... get in this order and, where there are more workers, from the beginning again.
class pinning {
 public:
  /// How processors are chosen.
  enum class pattern : unsigned char {
    none,     ///< the kernel chooses, and may move a worker at any time
    compact,  ///< side by side: hardware threads of a core first, then cores of a package, then packages
    scatter,  ///< far apart: packages in turn, then cores, and hardware threads of a core last
    listed,   ///< the processors given by number
  };
  using enum pattern;

  /// A pattern.
  pinning(pattern which = none) noexcept : pattern_(which) {}
  /// Processors by their numbers.
  pinning(std::initializer_list<unsigned> processors) : pattern_(listed), processors_(processors) {}
  /// The same.
  explicit pinning(std::vector<unsigned> processors) noexcept
      : pattern_(listed), processors_(std::move(processors)) {}

  /// The pattern; `listed` for numbers.
  pattern which() const noexcept { return pattern_; }
  /// The processors of `listed`; otherwise empty.
  const std::vector<unsigned>& processors() const noexcept { return processors_; }

 private:
  pattern pattern_;
  std::vector<unsigned> processors_;
};

/// Options of a runtime. Each member is overridden by the environment variable named beside it.
struct runtime_options {
  unsigned workers = 0;  ///< WEFT_WORKERS: kernel threads; 0: what affinity mask and CPU quota allow
  std::size_t stack_size = std::size_t{1} << 20;  ///< WEFT_STACK_SIZE: bytes of each context's stack
  bool inlining = true;                           ///< WEFT_INLINING: whether fork may run a task at once
  unsigned surplus = 4;     ///< WEFT_SURPLUS: tasks in a row left to thieves after a pause; 0 counts as 1
  unsigned cap = 1u << 14;  ///< WEFT_CAP: tasks that a strand keeps before fork runs some of them
  unsigned versions = 4;    ///< WEFT_VERSIONS: most versions of one object; 1: none is renamed
  std::chrono::microseconds spin{100};  ///< WEFT_SPIN_US: how long an idle worker searches before it sleeps
  std::chrono::milliseconds stall{0};   ///< WEFT_STALL_MS: after how long without progress a run is described
                                        ///< on the standard error stream; 0: never
  weft::pinning pinning = weft::pinning::none;  ///< WEFT_PINNING: which processors the workers run on
  std::string trace{};        ///< WEFT_TRACE: the file into which the runtime writes what its workers did and
                              ///< when; empty: none
  std::size_t trace_mb = 64;  ///< WEFT_TRACE_MB: mebibytes of memory for that; then the oldest is dropped
};

}  // namespace weft::inline WEFT_ABI
