// SPDX-License-Identifier: BSL-1.0
// What a body knows while it calls a function whose forks are recorded, or replayed from a record.
#pragma once

#include <weft/task/closure.hpp>

namespace weft::inline WEFT_ABI::sched {

class record;

/// *Thread safety*: the strand's owner.
struct recorded_call {
  record* of = nullptr;
  std::uint32_t next = 0;  ///< how many tasks it has forked
  bool recording = false;  ///< else it is to be replayed
  bool broken = false;     ///< not all forks are known
  /// Null, or who takes the closures instead of a record: they do not become tasks, and it destroys their
  /// arguments.
  void (*take)(recorded_call& self, closure& c) noexcept = nullptr;

  /// Notes a closure that is about to be linked. *Returns*: false if it was taken, and is not to be linked.
  bool note(closure& c) noexcept;
  /// The function has returned. *Throws*: std::bad_alloc.
  void end();

 private:
  void compare_(closure& c) const;
};

}  // namespace weft::inline WEFT_ABI::sched
