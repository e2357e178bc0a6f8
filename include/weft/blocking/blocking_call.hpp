// SPDX-License-Identifier: BSL-1.0
// A call that may block its kernel thread, made where that is no worker's.
#pragma once

#include <weft/base/config.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Suspends the calling body until a spare kernel thread has called `f(of)`.
/// *Requires*: called in a task.
/// *Throws*: std::bad_alloc, std::system_error; then it has not been called.
/// *Suspends*: yes.
void call_on_spare_thread(void (*f)(void*) noexcept, void* of);

}  // namespace weft::inline WEFT_ABI::sched
