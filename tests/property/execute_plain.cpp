// SPDX-License-Identifier: BSL-1.0
// The runner with values that are plain words.
#include "runner.hpp"

namespace property {

observation execute_plain(weft::runtime& rt, const program& p, const expectation& expected) {
  return execute<std::uint64_t>(rt, p, expected);
}

}  // namespace property
