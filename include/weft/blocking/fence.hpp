// SPDX-License-Identifier: BSL-1.0
// A closure that tells when everything before it in reference order has ended well, or that it has not.
#pragma once

#include <weft/sched/fork.hpp>

namespace weft::inline WEFT_ABI::sched {

/// What wants to be told. Called by the strand's owner, once: `passed` when all tasks that the same body has
/// forked before have ended, or `dropped` because one of them has thrown or the run was stopped.
struct fence_listener {
  void (*passed)(fence_listener&);
  void (*dropped)(fence_listener&) noexcept;
};

/// Puts a fence behind all that the running body has forked so far.
/// *Requires*: something is pending.
/// *Throws*: std::bad_alloc; then nothing has happened.
void put_fence(strand& s, fence_listener& l);

}  // namespace weft::inline WEFT_ABI::sched
