// SPDX-License-Identifier: BSL-1.0
// How deep the running stack is.
#pragma once

#include <weft/base/config.hpp>

#include <cstdint>

namespace weft::inline WEFT_ABI::context {

/// An address near the end of the caller's stack. *Cost*: one instruction.
WEFT_ALWAYS_INLINE std::uintptr_t stack_pointer() noexcept {
#if defined(__x86_64__)
  std::uintptr_t sp;
  asm("movq %%rsp, %0" : "=r"(sp));  // the builtin below would force a frame pointer on every caller
  return sp;
#else
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
#endif
}

}  // namespace weft::inline WEFT_ABI::context
