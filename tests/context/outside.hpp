// SPDX-License-Identifier: BSL-1.0
// Completes, for the tests of this room alone, the object that current() names before anybody sets it.
#pragma once

#include <weft/context/local.hpp>

namespace weft::inline WEFT_ABI::context {

struct outside_block {
  int attention = 1;
};
inline constinit outside_block outside;

}  // namespace weft::inline WEFT_ABI::context
