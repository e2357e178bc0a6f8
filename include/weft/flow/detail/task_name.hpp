// SPDX-License-Identifier: BSL-1.0
// What tracers and records are told of the name of a task that is being forked.
#pragma once

#include <weft/base/probe.hpp>
#include <weft/sched/definitions.hpp>

namespace weft::inline WEFT_ABI::flow {

/// The name of a task, where it is not in a closure.
template <bool WithOptions>
const char* name_of([[maybe_unused]] const sched::task_options* options) noexcept {
  if constexpr (WithOptions)
    return options->name;
  else
    return sched::default_options.name;
}

/// For tracers. A task without options has no name there, which would have to be loaded.
template <bool WithOptions>
WEFT_ALWAYS_INLINE void tell_deferred([[maybe_unused]] const sched::task_options* options,
                                      const sched::closure& c, const sched::strand& s) noexcept {
  if constexpr (WithOptions)
    base::probe::fork(options->name, &c, &s);
  else
    base::probe::fork(nullptr, &c, &s);
}

}  // namespace weft::inline WEFT_ABI::flow
