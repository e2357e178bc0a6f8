// SPDX-License-Identifier: BSL-1.0
// Turns a timed run of weft into an outcome with what its runtime counted meanwhile.
#pragma once

#include "outcome.hpp"

#include <weft/weft.hpp>

#include <type_traits>

namespace weft_bench {

/// Runs `f(args...)` on `rt` and times it. The value is what f returns, or what `value()` gives when f
/// returns nothing.
template <class value_function, class function, class... arguments>
outcome timed_run(weft::runtime& rt, long long tasks, const value_function& value, const function& f,
                  arguments&&... args) {
  const weft::counters before = rt.counters();
  const stopwatch clock;
  rt.run(f, static_cast<arguments&&>(args)...);
  outcome o = plain_outcome(0, tasks, clock.seconds());
  const weft::counters after = rt.counters();
  o.value = static_cast<long long>(value());
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return o;
}

}  // namespace weft_bench
