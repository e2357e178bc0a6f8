// SPDX-License-Identifier: BSL-1.0
// The strand that the calling kernel thread executes, through the library's one thread-local pointer.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/context/local.hpp>
#include <weft/task/strand.hpp>

/// What threads that are no workers find: a strand on which nothing can be allocated or inlined.
struct weft::context::outside_block : weft::sched::strand {
  constexpr outside_block() noexcept : strand(weft::sched::stop_asked) {}  // no verb finds its fast path here
};
WEFT_PER_PROCESS inline constinit weft::context::outside_block weft::context::outside{};

namespace weft::inline WEFT_ABI::sched {

/// What a worker finds while it calls a steal function: it is outside tasks, and must not wait.
WEFT_PER_PROCESS inline constinit context::outside_block in_steal_function{};

/// *Returns*: the current strand; never a stale one, even after the running body has moved to another kernel
/// thread.
WEFT_ALWAYS_INLINE strand& current() noexcept { return *static_cast<strand*>(context::current()); }

inline void set_current(strand& s) noexcept { context::set_current(&s); }

/// Whether the calling code runs outside every task.
WEFT_ALWAYS_INLINE bool is_outside(const strand& s) noexcept { return s.outside; }

/// Ends the program with a sentence about a call that only a task may make.
[[noreturn]] WEFT_COLD inline void fail_outside(const char* sentence) noexcept {
#if defined(__PIC__) && !defined(__PIE__)
  base::fail(
      "%s (or the task belongs to a part of the program that does not share weft %s with this library)",
      sentence, WEFT_ABI_TEXT);
#else
  base::fail("%s", sentence);
#endif
}

/// Ends the program if a steal function is about to wait. `how`: as in "calls run()".
inline void check_may_block(const strand& s, const char* how) noexcept {
  if (&s == &in_steal_function) [[unlikely]]
    base::fail("a steal function %s, and would wait; it is called by a worker, which must not", how);
}

/// Stops a program of which this module shares only a part of what it must share as a whole: its linker was
/// told to export some of weft's symbols and to hide others.
inline void check_one_copy(const strand& s) noexcept {
  if (is_outside(s) && &s != &context::outside && &s != &in_steal_function)
    base::fail(
        "this library shares only some of weft's symbols with others: let its linker export all or none");
}

}  // namespace weft::inline WEFT_ABI::sched
