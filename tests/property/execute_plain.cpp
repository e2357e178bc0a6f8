// SPDX-License-Identifier: BSL-1.0
// The runner with values that are plain words.
#include "execute.hpp"
#include "fault/waiting.hpp"

#ifdef WEFT_TEST_SANITIZED

namespace property {

/// Sanitizers see more in counted values, and this would take them minutes to compile.
observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected,
                          weft::sched::run_recorder* record) {
  return execute_counted(rt, p, expected, record);
}

}  // namespace property

#else

#include "runner.hpp"

namespace property {

observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected,
                          weft::sched::run_recorder* record) {
  recorded_runtime where{rt, record};
  return execute<std::uint64_t>(where, p, expected);
}

}  // namespace property

#endif
