// SPDX-License-Identifier: BSL-1.0
// The one thread-local pointer of the library, read so that no compiler keeps it across a context switch.
#pragma once

#include <weft/base/config.hpp>

namespace weft::inline WEFT_ABI::context {

/// What current() points at in a kernel thread that has not called set_current(). The room that owns the
/// pointer completes the type and defines the object (`inline constinit outside_block outside;`), so that
/// its fast path meets a valid object in every thread and needs no test for null.
struct outside_block;
extern outside_block outside;

namespace detail {

/// The pointer itself. Only the functions of this file touch it. The fixed name is for the assembler text
/// below; `used` keeps it alive where optimisers see no reader.
WEFT_PER_PROCESS inline thread_local constinit void* slot asm("weft_current_" WEFT_ABI_TEXT) = &outside;

/// Stands for "the kernel thread that runs us, and its slot" in the compiler's eyes: reading the slot reads
/// it, and whatever may change the thread or the slot writes it. Nobody looks at its value. Of a type that
/// other stores cannot alias, or a store through any pointer would force the next read.
[[gnu::used]] WEFT_PER_MODULE inline long double token asm("weft_current_token_" WEFT_ABI_TEXT);

}  // namespace detail

#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__) && !defined(WEFT_PORTABLE_LOCAL)

/// The pointer of the kernel thread that runs the caller.
/// *Returns*: what set_current() last stored in this kernel thread, `&outside` before that.
/// *Suspends*: no. *Cost*: one load in a program, two in a shared library. The compiler merges reads between
/// two calls, but reads again after every call it cannot see through, since that call may have moved the
/// context to another kernel thread. *Thread safety*: any thread.
[[nodiscard]] WEFT_ALWAYS_INLINE void* current() noexcept {
  void* value;
#if defined(__PIC__) && !defined(__PIE__)
  asm("movq weft_current_" WEFT_ABI_TEXT "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"
      : "=r"(value)
      : "m"(detail::token));
#else
  asm("movq %%fs:weft_current_" WEFT_ABI_TEXT "@tpoff, %0" : "=r"(value) : "m"(detail::token));
#endif
  return value;
}

/// Sets the pointer of the kernel thread that runs the caller; current() of this thread returns it from now
/// on. *Suspends*: no. *Thread safety*: any thread, each its own pointer.
WEFT_ALWAYS_INLINE void set_current(void* value) noexcept {
#if defined(__PIC__) && !defined(__PIE__)
  void* offset;
  asm volatile("movq weft_current_" WEFT_ABI_TEXT "@gottpoff(%%rip), %0\n\tmovq %2, %%fs:(%0)"
               : "=&r"(offset), "+m"(detail::token)
               : "r"(value));
#else
  asm volatile("movq %1, %%fs:weft_current_" WEFT_ABI_TEXT "@tpoff" : "+m"(detail::token) : "r"(value));
#endif
}

#else

/// See above. Out of line, and opaque by the empty assembler text, because compilers compute the address of
/// a thread-local once per function and keep it, even across a call that changes the kernel thread.
[[nodiscard]] WEFT_NOINLINE inline void* current() noexcept {
  asm volatile("" : "+m"(detail::token) : : "memory");
  return detail::slot;
}

/// See above.
WEFT_NOINLINE inline void set_current(void* value) noexcept {
  asm volatile("" : "+m"(detail::token) : : "memory");
  detail::slot = value;
}

#endif

/// Tells the compiler that the kernel thread may be another one from here on. fiber::switch_to() does it;
/// code that changes stacks by other means must.
WEFT_ALWAYS_INLINE void forget_kernel_thread() noexcept {
  asm volatile("" : "+m"(detail::token) : : "memory");
}

}  // namespace weft::inline WEFT_ABI::context
