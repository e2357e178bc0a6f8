// SPDX-License-Identifier: BSL-1.0
// The one door to atomics, with the asymmetric pair by which a thief orders itself against an owner.
#pragma once

#include <weft/base/platform.hpp>

#if WEFT_ASYMMETRIC && !defined(WEFT_PLATFORM)
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft::base {

/// The owner's half of the asymmetric Dekker pattern: `owner_store(a, v); owner_load(b)` on one side,
/// `b.store(...); heavy_fence(); a.load()` on the other; at least one side sees the other's store.
/// *Cost*: a plain store and load where the kernel offers membarrier, ordered operations elsewhere.
template <class T, class V>
WEFT_ALWAYS_INLINE void owner_store(atomic<T>& place, V value) noexcept {
#if WEFT_ASYMMETRIC
  place.store(value, memory_order_release);
  std::atomic_signal_fence(
      memory_order_seq_cst);  // the compiler keeps the order; heavy_fence supplies the processor's
#else
  place.store(value, memory_order_seq_cst);  // pairs with the seq_cst operations around heavy_fence
#endif
}

/// See owner_store. Acquire: what a thief wrote before it left is visible after this load.
template <class T>
WEFT_ALWAYS_INLINE T owner_load(const atomic<T>& place) noexcept {
#if WEFT_ASYMMETRIC
  return place.load(memory_order_acquire);
#else
  return place.load(memory_order_seq_cst);
#endif
}

/// Reads and writes a pointer of any type that others may read or write meanwhile: which value they find does
/// not matter.
inline void* racy_load(const void* place) noexcept {
  using any_pointer [[gnu::may_alias]] = void*;
  return __atomic_load_n(static_cast<any_pointer const*>(place), __ATOMIC_RELAXED);
}
inline void racy_store(void* place, void* value) noexcept {
  using any_pointer [[gnu::may_alias]] = void*;
  __atomic_store_n(static_cast<any_pointer*>(place), value, __ATOMIC_RELAXED);
}

#if WEFT_ASYMMETRIC && !defined(WEFT_PLATFORM)

namespace detail {

/// Whether the kernel offers private expedited membarriers; registers the process for them. Initialised with
/// the program: the guard of a function's static could be held by another thread at a POSIX fork, and then
/// for ever.
inline const bool membarrier_works =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

/// A page of memory for page_fence; null if there is none, or no need of it.
inline void* const fence_page = []() -> void* {
#if defined(__x86_64__) || defined(__i386__)
  if (membarrier_works) return nullptr;
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page != MAP_FAILED ? page : nullptr;
#else
  return nullptr;  // elsewhere the hardware may tell other processors without interrupting them
#endif
}();

/// Taking rights away from a mapped page interrupts every processor that runs this process, which is a
/// full fence there. For kernels or containers that refuse membarrier.
WEFT_COLD inline void page_fence() noexcept {
  static constinit mutex one_at_a_time;
  const std::lock_guard hold(one_at_a_time);
  mprotect(fence_page, 4096, PROT_READ | PROT_WRITE);
  *static_cast<volatile char*>(fence_page) = 1;
  mprotect(fence_page, 4096, PROT_READ);
}

}  // namespace detail

/// Whether heavy_fence() has an effect here.
inline bool heavy_fence_works() noexcept { return detail::membarrier_works || detail::fence_page != nullptr; }

/// Makes every other thread of the process pass a full fence between two of its instructions.
/// *Cost*: microseconds; only thieves and workers about to sleep call it.
inline void heavy_fence() noexcept {
  fence();
  if (detail::membarrier_works) [[likely]]
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  else
    detail::page_fence();
}

#else

inline bool heavy_fence_works() noexcept { return true; }

/// The other half of owner_store where both sides fence, or on a platform of tests.
inline void heavy_fence() noexcept {
#if WEFT_ASYMMETRIC
  process_fence();
#elif WEFT_TSAN
  static atomic<int> everybody{0};  // Thread Sanitizer does not know fences
  everybody.fetch_add(1, memory_order_seq_cst);
#else
  fence();
#endif
}

#endif

}  // namespace weft::base
