// SPDX-License-Identifier: BSL-1.0
// The exception types that the library itself throws, and their common base.
#pragma once

#include <weft/base/config.hpp>

#include <stdexcept>
#include <string>

namespace weft {

/// Base of every exception that weft itself throws.
class WEFT_CROSSES_MODULES error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by `run` and `sync` when the run was stopped by its stop token.
class WEFT_CROSSES_MODULES cancelled : public error {
 public:
  cancelled() : error("weft: the run was stopped") {}
};

/// A runtime option or a WEFT_* environment variable has a value that makes no sense; the text names it.
class WEFT_CROSSES_MODULES option_error : public error {
 public:
  using error::error;
};

}  // namespace weft
