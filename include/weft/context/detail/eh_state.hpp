// SPDX-License-Identifier: BSL-1.0
// The C++ exception state of a context: what the run-time library keeps per kernel thread, moved at a switch.
#pragma once

#include <weft/base/config.hpp>

#include <cxxabi.h>

#include <cstring>

namespace weft::inline WEFT_ABI::context::detail {

/// The chain of exceptions being handled and the number of those in flight. The Itanium C++ ABI keeps them
/// once per kernel thread; a context that suspends inside a handler would leave its exception to whoever
/// runs next and find a stranger's when it resumes elsewhere.
class eh_state {
 public:
  /// Stores the kernel thread's state in `leaving` and loads that of `entering`.
  /// *Requires*: called before the jump, with no other use of the state until it. Then nothing that depends
  /// on the kernel thread is left to do after the jump, where inlined code could still hold an old address.
  WEFT_ALWAYS_INLINE static void exchange(eh_state& leaving, const eh_state& entering) noexcept {
    // Declared const, so calls on both sides of an inlined switch would become one, with the old thread's
    // address; a pointer the compiler cannot see through keeps them apart.
    auto* state_of_thread = &abi::__cxa_get_globals;
    asm volatile("" : "+r"(state_of_thread));
    // Bytes, because the run-time library's own type is not declared to us.
    void* const thread = state_of_thread();
    std::memcpy(static_cast<void*>(&leaving), thread, sizeof(eh_state));
    std::memcpy(thread, static_cast<const void*>(&entering), sizeof(eh_state));
  }

 private:
  [[maybe_unused]] void* caught_ = nullptr;
  [[maybe_unused]] unsigned uncaught_ = 0;
};

}  // namespace weft::inline WEFT_ABI::context::detail
