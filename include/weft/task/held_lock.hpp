// SPDX-License-Identifier: BSL-1.0
// Checked builds: what the running bodies hold that belongs to their kernel thread, and must not wait with.
#pragma once

#include <weft/base/config.hpp>

#include <source_location>

namespace weft::inline WEFT_ABI::sched {

/// Something that is tied to the kernel thread, a lock as a rule. It stands where its scope is.
struct held_lock {
  const char* name;
  std::source_location where;
  held_lock* outer;  ///< held by the same strand for longer
};

}  // namespace weft::inline WEFT_ABI::sched
