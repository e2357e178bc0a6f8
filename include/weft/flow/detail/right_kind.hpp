// SPDX-License-Identifier: BSL-1.0
// What an argument or a parameter of a task says about an object.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/task/access.hpp>

namespace weft::inline WEFT_ABI::flow {

/// none: not an object. all: the object itself, as its maker has it.
enum class right_kind : unsigned char { none, read, write, update, reduce, commute, all };

constexpr sched::access_mode mode_of(right_kind g) noexcept {
  using enum sched::access_mode;
  return g == right_kind::read      ? read
         : g == right_kind::write   ? write
         : g == right_kind::reduce  ? reduce
         : g == right_kind::commute ? commute
                                    : update;
}

}  // namespace weft::inline WEFT_ABI::flow
