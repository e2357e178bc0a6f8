// SPDX-License-Identifier: BSL-1.0
// What the sanitizers and Valgrind must be told about stacks and switches; empty where they are absent.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>

#if !defined(NVALGRIND) && __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old, std::size_t* size_old);
void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace weft::inline WEFT_ABI::context::detail {

inline constexpr bool asan_on = WEFT_ASAN != 0;
inline constexpr bool tsan_on = WEFT_TSAN != 0;

/// One context as Address Sanitizer sees it: the bounds of its stack and, while it is suspended, its fake
/// stack (the frames kept apart to find uses after return).
template <bool On>
class asan_context {
 public:
  asan_context() noexcept = default;
  asan_context(const void* lowest, std::size_t size) noexcept : lowest_(lowest), size_(size) {}

  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void leave_for(const asan_context& to) noexcept {
    __sanitizer_start_switch_fiber(&fake_, to.lowest_, to.size_);
  }
  /// An adopted stack's bounds are known to the sanitizer alone, which names them at the first switch away.
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void arrive_from(asan_context& from) noexcept {
    __sanitizer_finish_switch_fiber(fake_, &from.lowest_, &from.size_);
    fake_ = nullptr;
  }
  /// Frees the fake stack of a context that never runs again, and the marks its frames left in the shadow
  /// of the stack, which the next user of that memory would trip over. The sanitizer frees only the fake
  /// stack that is current, so this one becomes current for a moment; the real stack stays.
  [[gnu::noinline, gnu::no_sanitize_address]] void end() noexcept {
    if (fake_ != nullptr) {
      void* own = nullptr;
      const void* lowest = nullptr;
      std::size_t size = 0;
      __sanitizer_start_switch_fiber(&own, lowest_, size_);
      __sanitizer_finish_switch_fiber(fake_, &lowest, &size);
      __sanitizer_start_switch_fiber(nullptr, lowest, size);
      __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
      fake_ = nullptr;
    }
    __asan_unpoison_memory_region(lowest_, size_);
  }

 private:
  const void* lowest_ = nullptr;
  std::size_t size_ = 0;
  void* fake_ = nullptr;
};

template <>
class asan_context<false> {
 public:
  asan_context() noexcept = default;
  asan_context(const void*, std::size_t) noexcept {}
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void leave_for(const asan_context&) noexcept {}
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void arrive_from(asan_context&) noexcept {}
  void end() noexcept {}
};

/// One context as Thread Sanitizer sees it: a thread of its own, whoever executes it.
template <bool On>
class tsan_context {
 public:
  static tsan_context adopt() noexcept { return tsan_context(__tsan_get_current_fiber()); }
  static tsan_context fresh() noexcept { return tsan_context(__tsan_create_fiber(0)); }
  /// If `ordered`, what ran before on this kernel thread comes before what runs now; else only releases and
  /// acquires count.
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void enter(bool ordered) const noexcept {
    __tsan_switch_to_fiber(fiber_, ordered ? 0 : 1);
  }
  /// A task that runs apart (task/races.hpp) may leave the context below it.
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void leave() noexcept {
    if constexpr (WEFT_RACES != 0) fiber_ = __tsan_get_current_fiber();
  }
  /// *Requires*: made by fresh(), not current.
  void end() noexcept {
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
    fiber_ = nullptr;
  }

 private:
  explicit tsan_context(void* fiber) noexcept : fiber_(fiber) {}
  void* fiber_;
};

template <>
class tsan_context<false> {
 public:
  static tsan_context adopt() noexcept { return {}; }
  static tsan_context fresh() noexcept { return {}; }
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void enter(bool) const noexcept {}
  [[gnu::no_sanitize_thread]] WEFT_ALWAYS_INLINE void leave() noexcept {}
  void end() noexcept {}
};

/// Tells Valgrind that a move of the stack pointer into [lowest, top) is a change of stacks. *Returns*: the
/// key for forget_stack().
inline unsigned announce_stack([[maybe_unused]] const void* lowest,
                               [[maybe_unused]] const void* top) noexcept {
#if defined(VALGRIND_STACK_REGISTER)
  return static_cast<unsigned>(VALGRIND_STACK_REGISTER(lowest, top));
#else
  return 0;
#endif
}

inline void forget_stack([[maybe_unused]] unsigned key) noexcept {
#if defined(VALGRIND_STACK_DEREGISTER)
  VALGRIND_STACK_DEREGISTER(key);
#endif
}

}  // namespace weft::inline WEFT_ABI::context::detail
