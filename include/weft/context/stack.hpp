// SPDX-License-Identifier: BSL-1.0
// One stack for a context: pages from the kernel, with a guard page below them unless it is one of very many.
#pragma once

#include <weft/base/error.hpp>
#include <weft/context/detail/guard_registry.hpp>
#include <weft/context/detail/sanitizer.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

namespace weft::inline WEFT_ABI::context {

/// Bytes of a page of memory.
inline std::size_t page_size() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

namespace detail {

class stack_slab;

[[noreturn]] inline void refuse_stack(std::size_t bytes, int reason) {
  throw std::system_error(
      reason, std::generic_category(),
      "weft: no memory or no mapping left for a context stack of " + std::to_string(bytes) + " bytes");
}

/// Pages for stacks of `bytes`. *Throws*: std::system_error.
inline std::byte* map_pages(std::size_t size, std::size_t bytes) {
  void* const base = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) refuse_stack(bytes, errno);
  // One touched page must not count, or cost, two megabytes. Refusal is harmless.
  madvise(base, size, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(base);
}

}  // namespace detail

/// A guarded stack, the sole owner of its memory, or a part of a slab, which has no guard. It takes memory
/// only for pages that were touched. A write just below lowest() hits the guard page; one far below may miss
/// it, unless the code is compiled with -fstack-clash-protection. Guards of all stacks are known to the
/// overflow handler (overflow.hpp). *Thread safety*: as a value; the registry of guards takes care of itself.
class stack {
 public:
  /// Least usable size in bytes: one signal frame alone takes 12 KiB on processors with wide vectors.
  static constexpr std::size_t minimum = 32 * 1024;

  /// *Throws*: weft::option_error, naming the option, if `bytes < minimum`.
  static void check_size(std::size_t bytes) {
    if (bytes >= minimum) return;
    throw option_error("weft: a context stack of " + std::to_string(bytes) +
                       " bytes is too small; at least " + std::to_string(minimum) +
                       " are needed (stack_size of runtime_options or spawn_options, WEFT_STACK_SIZE)");
  }

  /// No stack: size() is 0.
  stack() noexcept = default;

  /// Maps `bytes` (rounded up to whole pages) of usable stack and the guard page. `owner` is only a mark
  /// that tells the stacks of one pool from others.
  /// *Throws*: weft::option_error if `bytes < minimum`; std::system_error (ENOMEM) if memory, address space
  /// or the number of mappings is exhausted, std::bad_alloc if the registry of guards cannot grow; nothing
  /// leaks. *Suspends*: no. *Cost*: three or four system calls.
  explicit stack(std::size_t bytes, const void* owner = nullptr) {
    check_size(bytes);
    const std::size_t page = page_size();
    if (bytes > std::numeric_limits<std::size_t>::max() - 2 * page) detail::refuse_stack(bytes, ENOMEM);
    const std::size_t size = (bytes + page - 1) / page * page;
    std::byte* const base = detail::map_pages(size + page, bytes);
    if (mprotect(base, page, PROT_NONE) != 0) {
      const int reason = errno;
      munmap(base, size + page);
      detail::refuse_stack(bytes, reason);
    }
    const auto guard = reinterpret_cast<std::uintptr_t>(base);
    try {
      entry_ = &detail::guards.enter(guard, guard + page, guard + page + size, owner);
    } catch (...) {
      munmap(base, size + page);
      throw;
    }
    lowest_ = base + page;
    size_ = size;
    valgrind_key_ = detail::announce_stack(lowest_, lowest_ + size_);
  }

  stack(stack&& other) noexcept
      : lowest_(std::exchange(other.lowest_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        entry_(std::exchange(other.entry_, nullptr)),
        slab_(std::exchange(other.slab_, nullptr)),
        valgrind_key_(std::exchange(other.valgrind_key_, 0)) {}

  stack& operator=(stack&& other) noexcept {
    stack old(std::move(other));
    std::swap(lowest_, old.lowest_);
    std::swap(size_, old.size_);
    std::swap(entry_, old.entry_);
    std::swap(slab_, old.slab_);
    std::swap(valgrind_key_, old.valgrind_key_);
    return *this;
  }

  /// Gives the memory back. *Requires*: nobody executes on it.
  ~stack() {
    if (size_ == 0) return;
    detail::forget_stack(valgrind_key_);
    if (slab_ != nullptr) return;
    detail::guards.leave(*entry_);
    munmap(lowest_ - page_size(), size_ + page_size());
  }

  /// First usable byte; the guard page ends here.
  void* lowest() const noexcept { return lowest_; }
  /// One past the last usable byte: where a downward growing stack starts. Page-aligned.
  void* top() const noexcept { return lowest_ + size_; }
  /// Usable bytes; 0 for no stack.
  std::size_t size() const noexcept { return size_; }

  /// Bytes from the top to the lowest page ever touched; see detail::touched_bytes.
  std::size_t high_water() const noexcept;

 private:
  friend detail::stack_slab;
  friend class stack_source;
  stack(std::byte* lowest, std::size_t size, detail::stack_slab& slab) noexcept
      : lowest_(lowest),
        size_(size),
        slab_(&slab),
        valgrind_key_(detail::announce_stack(lowest_, lowest_ + size_)) {}

  std::byte* lowest_ = nullptr;
  std::size_t size_ = 0;
  detail::guard_entry* entry_ = nullptr;
  detail::stack_slab* slab_ = nullptr;  // that owns the memory; then there is no guard
  unsigned valgrind_key_ = 0;
};

namespace detail {

/// Bytes from `bounds.top` down to the lowest page of the stack that is in memory, 0 if none is or the kernel
/// does not say. Pages are never given back while a stack is mapped, so this is the deepest use so far,
/// unless the kernel swapped pages out. Harmless on addresses that are not mapped. *Cost*: one system call
/// for each 4 MiB of untouched stack (4 KiB pages).
inline std::size_t touched_bytes(stack_bounds bounds) noexcept {
  constexpr std::size_t most = 1024;
  unsigned char present[most];
  const std::size_t page = page_size();
  for (std::uintptr_t at = bounds.lowest; at < bounds.top;) {
    const std::size_t pages = std::min((bounds.top - at) / page, most);
    if (mincore(reinterpret_cast<void*>(at), pages * page, present) != 0) return 0;
    for (std::size_t i = 0; i < pages; ++i, at += page)
      if ((present[i] & 1) != 0) return bounds.top - at;
  }
  return 0;
}

}  // namespace detail

inline std::size_t stack::high_water() const noexcept {
  const auto lowest = reinterpret_cast<std::uintptr_t>(lowest_);
  return detail::touched_bytes({lowest, lowest + size_});
}

}  // namespace weft::inline WEFT_ABI::context
