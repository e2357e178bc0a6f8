// SPDX-License-Identifier: BSL-1.0
// Programs over all access modes, with values that are plain words.
#include "fault/waiting.hpp"
#include "modes_execute.hpp"

#ifdef WEFT_TEST_SANITIZED

namespace property::modes {

/// Sanitizers see more in counted values, and this would take them minutes to compile.
observation execute_plain(weft::runtime& rt, const program& p, notices& seen) {
  return execute_counted(rt, p, seen);
}

}  // namespace property::modes

#else

#include "modes_runner.hpp"

namespace property::modes {

observation execute_plain(weft::runtime& rt, const program& p, notices& seen) {
  return execute<std::uint64_t>(rt, p, seen);
}

}  // namespace property::modes

#endif
