// SPDX-License-Identifier: BSL-1.0
// What an argument or a parameter of a task says about an object, and what may be handed on.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/task/access.hpp>

namespace weft::inline WEFT_ABI::flow {

/// none: not an object. all: the object itself, as its maker has it.
enum class grade : unsigned char { none, read, write, update, reduce, commute, all };

/// Handing on (DESIGN 2.3). Contributions go on with the same operation, which the types see to.
constexpr bool may_hand_on(grade held, grade asked) noexcept {
  if (held == grade::all || held == grade::update) return true;
  return held == asked && held != grade::commute;
}

constexpr sched::access_mode mode_of(grade g) noexcept {
  using enum sched::access_mode;
  return g == grade::read      ? read
         : g == grade::write   ? write
         : g == grade::reduce  ? reduce
         : g == grade::commute ? commute
                               : update;
}

}  // namespace weft::inline WEFT_ABI::flow
