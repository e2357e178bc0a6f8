// SPDX-License-Identifier: BSL-1.0
// A context (stack and registers) and the one function of the library that changes from one to another.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/context/detail/eh_state.hpp>
#include <weft/context/detail/sanitizer.hpp>
#include <weft/context/local.hpp>
#include <weft/context/stack.hpp>

#include <boost/context/detail/fcontext.hpp>

#include <utility>

namespace weft::inline WEFT_ABI::context {

/// One sequential flow of control with its own stack. Which kernel thread executes it may change at every
/// switch. It is either running (on exactly one kernel thread) or suspended.
/// Who may touch what when: 1. a running fiber belongs to the code that runs on it; 2. switch_to(from, to)
/// needs both: `from` is the running one, and nobody else may have `to`; 3. `from` is suspended, and may be
/// handed to another thread, only once the code of `to` has got control: publish it there, by a release
/// that the next switcher acquires. Publishing it before the switch would let another thread resume a
/// context whose registers are not stored yet.
/// *Source*: fcontext of Boost.Context stores the registers.
class fiber {
 public:
  /// Must not return and must not throw: it ends by switching away for good.
  using entry = void (*)(void*) noexcept;

  /// Adopts the stack that the caller runs on as a running fiber.
  /// *Requires*: destroyed by the same flow of control, that is while running again.
  fiber() noexcept : tsan_(detail::tsan_context<detail::tsan_on>::adopt()) {}

  /// A suspended fiber which calls `start(argument)` on `memory` when it is first switched to. Of the bytes
  /// at the top, it leaves `reserved` to others, a multiple of 16: to itself, for instance. It starts with
  /// the floating-point control and status (MXCSR, x87 control word) of the creating thread; see
  /// set_sticky_float_flags(). *Suspends*: no. *Cost*: some stores; 0.02 to 0.2 ms under Thread Sanitizer.
  fiber(stack&& memory, entry start, void* argument, std::size_t reserved = 0) noexcept
      : stack_(std::move(memory)),
        start_(start),
        argument_(argument),
        asan_(stack_.lowest(), stack_.size() - reserved),
        tsan_(detail::tsan_context<detail::tsan_on>::fresh()) {
    if (stack_.size() == 0) base::fail("a fiber is made without a stack");
    context_ = boost::context::detail::make_fcontext(static_cast<std::byte*>(stack_.top()) - reserved,
                                                     stack_.size() - reserved, &begin);
  }

  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Destroys a suspended fiber, or the adopted one that runs. What the frames on its stack own is not
  /// destroyed.
  ~fiber() {
    if (start_ == nullptr) {
      if (context_ != nullptr)
        base::fail("a fiber that adopted its stack is destroyed while it is suspended");
    } else if (stack_.size() != 0) {
      static_cast<void>(release_stack());
    }
  }

  /// Ends a suspended fiber and gives back its stack. The fiber can then only be destroyed.
  /// *Requires*: made with a stack, suspended; ending a running fiber stops the program.
  [[nodiscard]] stack release_stack() noexcept {
    if (context_ == nullptr || start_ == nullptr)
      base::fail("a fiber is ended that is running or has no stack");
    context_ = nullptr;
    asan_.end();
    tsan_.end();
    return std::move(stack_);
  }

  /// Whether it can be switched to. *Thread safety*: only for who may switch to it (rule 2).
  bool suspended() const noexcept { return context_ != nullptr; }

  /// Suspends `from`, the fiber that runs the caller, and continues `to`. Returns when somebody switches back
  /// to `from`, possibly on another kernel thread: addresses of thread-locals, errno included, are stale
  /// then. Saved: the registers that calls preserve, MXCSR and x87 control word, and the exceptions being
  /// handled or in flight. *Requires*: `from` runs the caller, `to` is suspended; else the program stops.
  /// Not `Ordered`: Thread Sanitizer does not take the switch for ordering.
  /// *Suspends*: yes, it is what suspends. *Cost*: about 5 ns, and ten times that if the two floating-point
  /// status words differ. *Thread safety*: rules 2 and 3 above.
  template <bool Ordered = true>
#if WEFT_TSAN
  [[gnu::noinline, gnu::no_sanitize_thread]]
#else
  WEFT_ALWAYS_INLINE  // a return right after the jump would be mispredicted, 8 ns
#endif
  static void switch_to(fiber& from, fiber& to) noexcept {
    void* const target = to.context_;
    if (target == nullptr || from.context_ != nullptr) [[unlikely]]
      refuse_switch();
    to.context_ = nullptr;
    from.next_ = &to;
    detail::eh_state::exchange(from.exceptions_, to.exceptions_);
    from.asan_.leave_for(to.asan_);
    from.tsan_.leave();
    to.tsan_.enter(Ordered);
    const auto origin = boost::context::detail::jump_fcontext(target, &from);
    arrive(origin, from);
    forget_kernel_thread();
  }

 private:
  [[noreturn]] WEFT_COLD static void refuse_switch() noexcept {
    base::fail("a switch between contexts must go from the running one to a suspended one");
  }

  using transfer = boost::context::detail::transfer_t;

  /// First act on the stack of `self` after a jump: only now is it known where `origin` stopped.
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE static fiber& arrive(transfer origin, fiber& self) noexcept {
    auto& from = *static_cast<fiber*>(origin.data);
    from.context_ = origin.fctx;
    self.asan_.arrive_from(from.asan_);
    return from;
  }

  /// Lowest frame on a fresh stack.
  [[gnu::noinline, gnu::no_sanitize_thread]] static void begin(transfer origin) noexcept {
    fiber& self = *static_cast<fiber*>(origin.data)->next_;
    arrive(origin, self);
    self.start_(self.argument_);
    base::fail("the entry function of a fiber returned");
  }

  void* context_ = nullptr;  // where it stopped; null while it runs and after it ended
  fiber* next_ = nullptr;    // whom it switched to last; read by begin() before `from` can run again
  detail::eh_state exceptions_;
  stack stack_;
  entry start_ = nullptr;  // null: adopted
  void* argument_ = nullptr;
  [[no_unique_address]] detail::asan_context<detail::asan_on> asan_;
  [[no_unique_address]] detail::tsan_context<detail::tsan_on> tsan_;
};

/// Sets all sticky floating-point exception flags (x86 MXCSR) of the calling thread's context. Switching
/// loads MXCSR, and a load that changes it costs some 50 ns; the flags change with the first inexact
/// operation. A runtime that sets them in each kernel thread before it makes fibers there keeps them equal
/// everywhere. User code then sees all flags raised (fetestexcept); clearing them in one task makes the
/// switches around it slow, not wrong. No effect on other processors. *Suspends*: no. *Cost*: tens of ns.
inline void set_sticky_float_flags() noexcept {
#if defined(__x86_64__)
  constexpr unsigned all_flags = 0x3f;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | all_flags);
#endif
}

}  // namespace weft::inline WEFT_ABI::context
