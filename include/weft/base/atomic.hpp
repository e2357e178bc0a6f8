// SPDX-License-Identifier: BSL-1.0
// The one way to atomics, with the asymmetric pair by which a thief orders itself against an owner.
#pragma once

#include <weft/base/platform.hpp>

#if WEFT_ASYMMETRIC && !defined(WEFT_PLATFORM)
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#endif

#include <cstddef>
#include <cstdint>

namespace weft::inline WEFT_ABI::base {

/// The owner's half of the asymmetric Dekker pattern: `owner_store(a, v); owner_load(b)` on one side,
/// `b.store(...); heavy_fence(); a.load()` on the other; at least one side sees the other's store, if the
/// fence had an effect. *Cost*: a plain store and load where the kernel offers membarrier, ordered operations
/// elsewhere.
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

/// By what means heavy_fence() has had its effect.
enum class fenced : std::uint8_t {
  by_kernel,
  by_pages,   ///< which takes longer
  by_nothing  ///< it had none: the kernel refuses both
};

#if WEFT_ASYMMETRIC && !defined(WEFT_PLATFORM)

namespace detail {

/// Whether the kernel offers private expedited membarriers; registers the process for them. Initialised with
/// the program: the guard of a function's static could be held by another thread at a POSIX fork, and then
/// for ever.
inline const bool membarrier_offered =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

/// Whether other processors learn of changed rights to a page by an interrupt. Some are told by an
/// instruction instead: ARM's, and newer ones by AMD (INVLPGB).
inline bool pages_interrupt() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x8000'0008, &a, &b, &c, &d) == 0 || (b & 1u << 3) == 0;
#else
  return false;
#endif
}

/// Taking rights away from a mapped page interrupts every processor that runs this process, which is a full
/// fence there. For kernels, containers and sandboxes that refuse membarrier. A page of its own each time: a
/// common one would need a lock, which at a POSIX fork another thread could hold.
/// *Returns*: whether it had its effect.
WEFT_COLD inline bool page_fence() noexcept {
  constexpr std::size_t size = 4096;
  if (!pages_interrupt()) return false;
  void* const page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  *static_cast<volatile char*>(page) = 1;  // before that there is nothing to take away
  const bool taken = mprotect(page, size, PROT_READ) == 0;
  munmap(page, size);
  return taken;
}

/// Whether pages do where the kernel does not offer membarrier.
inline const bool pages_offered = !membarrier_offered && page_fence();

/// Whether the user has been told that the kernel refuses what it offered when the program began.
WEFT_PER_PROCESS inline constinit atomic<bool> told_of_refusal{false};

/// heavy_fence() without membarrier: a process may take system calls away from itself when it has begun.
WEFT_COLD inline fenced fence_otherwise(int reason) noexcept {
  const fenced how = page_fence() ? fenced::by_pages : fenced::by_nothing;
  const bool as_at_start = how == fenced::by_pages && pages_offered;
  if (!as_at_start && !told_of_refusal.exchange(true, memory_order_relaxed))  // orders nothing
    std::fprintf(stderr, "weft: membarrier is refused (error %d); %s\n", reason,
                 how == fenced::by_pages
                     ? "thieves fence by changing pages instead, which takes longer"
                     : "thieves take only what owners show them, so long tasks may run one after the other");
  return how;
}

}  // namespace detail

/// Whether heavy_fence() had an effect when the program began.
inline bool heavy_fence_works() noexcept { return detail::membarrier_offered || detail::pages_offered; }

/// Makes every other thread of the process pass a full fence between two of its instructions, unless it
/// returns fenced::by_nothing: then it is a full fence of the calling thread alone.
/// *Cost*: microseconds; only thieves and workers about to sleep call it.
inline fenced heavy_fence() noexcept {
  fence();
  if (detail::membarrier_offered) [[likely]] {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) [[likely]]
      return fenced::by_kernel;
    return detail::fence_otherwise(errno);
  }
  return detail::fence_otherwise(ENOSYS);
}

#else

inline bool heavy_fence_works() noexcept { return true; }

/// The other half of owner_store where both sides fence, or on a platform of tests.
inline fenced heavy_fence() noexcept {
#if WEFT_ASYMMETRIC
  process_fence();
#elif WEFT_TSAN
  static atomic<int> everybody{0};  // Thread Sanitizer does not know fences
  everybody.fetch_add(1, memory_order_seq_cst);
#else
  fence();
#endif
  return fenced::by_kernel;
}

#endif

}  // namespace weft::inline WEFT_ABI::base
