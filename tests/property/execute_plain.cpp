// SPDX-License-Identifier: BSL-1.0
// The runner with values that are plain words.
#include "execute.hpp"
#include "fault/waiting.hpp"

#ifdef WEFT_TEST_SANITIZED

namespace property {

/// Sanitizers see more in counted values, and this would take them minutes to compile.
observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected) {
  return execute_counted(rt, p, expected);
}

}  // namespace property

#else

#include "runner.hpp"

namespace property {

observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected) {
  return execute<std::uint64_t>(rt, p, expected);
}

}  // namespace property

#endif
