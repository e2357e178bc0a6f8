// SPDX-License-Identifier: BSL-1.0
// What an argument or a parameter of a task says about an object.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/task/access.hpp>

namespace weft::inline WEFT_ABI::flow {

/// none: not an object. all: the object itself, as its maker has it.
enum class grade : unsigned char { none, read, write, update, reduce, commute, all };

constexpr sched::access_mode mode_of(grade g) noexcept {
  using enum sched::access_mode;
  return g == grade::read      ? read
         : g == grade::write   ? write
         : g == grade::reduce  ? reduce
         : g == grade::commute ? commute
                               : update;
}

}  // namespace weft::inline WEFT_ABI::flow
