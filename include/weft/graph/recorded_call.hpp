// SPDX-License-Identifier: BSL-1.0
// How a call adds to a record, or is compared with it; and the mark of that in the frame.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/graph/record.hpp>
#include <weft/task/recorded_call.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Stands in a frame before closures that a record may know. It has ended from the beginning, so whoever does
/// not execute the frame by a graph goes past it.
struct record_marker final : closure {
  /// `known`: null while it is recorded. The next closure is its task `place`.
  record_marker(const record* known, std::uint32_t place) noexcept : closure(kind), of(known), from(place) {
    state.store(closure_state::done, base::memory_order_relaxed);  // published by link
  }
  /// *Returns*: null if the closure is not a marker.
  static const record_marker* is(const closure& c) noexcept {
    return c.what->marker ? static_cast<const record_marker*>(&c) : nullptr;
  }

  const record* of;
  std::uint32_t from;

 private:
  static constexpr descriptor kind{.run = [](closure&) {}, .drop = [](closure&) noexcept {}, .marker = true};
};

#if WEFT_CHECKED
/// Stops the program if the next task is not that of the record.
WEFT_FUNCTION void recorded_call::compare_(closure& c) const {
  const char* const name = c.what->options(c).name;
  if (next >= of->size())
    base::fail("a recorded graph has changed: '%s' is one more task than the %u that were recorded", name,
               unsigned(of->size()));
  if (!of->same_kind(next, c))
    base::fail(
        "a recorded graph has changed: task %u, '%s', has another function or other kinds of "
        "arguments than recorded",
        unsigned(next), name);
  if (!of->same(next, c))
    base::fail("a recorded graph has changed: task %u, '%s', has rights on other objects than recorded",
               unsigned(next), name);
}
#endif

WEFT_COLD WEFT_FUNCTION bool recorded_call::note(closure& c) noexcept {
  if (take != nullptr) {
    take(*this, c);
    return false;
  }
  if (broken) return true;
  try {
    if (recording) {
      of->add(c);
    } else {
#if WEFT_CHECKED
      compare_(c);
#endif
    }
  } catch (...) {
    broken = true;
  }
  ++next;
  return true;
}

WEFT_FUNCTION void recorded_call::end() {
  if (broken) return;
  if (recording) {
    of->complete();
    recording = false;
  }
#if WEFT_CHECKED
  if (next != of->size())
    base::fail("a recorded graph has changed: %u tasks instead of the %u that were recorded", unsigned(next),
               unsigned(of->size()));
#endif
}

}  // namespace weft::inline WEFT_ABI::sched
