// SPDX-License-Identifier: BSL-1.0
// Memory for large tables that are looked up at random: on huge pages, where the kernel has some.
#pragma once

#include <weft/base/config.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace weft::inline WEFT_ABI::stream {

/// An allocator. A table of tens of megabytes misses the processor's page table cache at nearly every random
/// access, and takes thousands of page faults to be filled; huge pages save most of both.
template <class T>
struct huge_page_allocator {
  using value_type = T;
  huge_page_allocator() = default;
  template <class U>
  explicit(false) huge_page_allocator(const huge_page_allocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size < least_) return static_cast<T*>(::operator new(size, std::align_val_t{alignof(T)}));
    void* const memory = ::operator new(size, std::align_val_t{huge_page_});
    // Advice that is not taken costs time only.
    (void)::madvise(memory, size / huge_page_ * huge_page_, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    ::operator delete(memory, std::align_val_t{count * sizeof(T) < least_ ? alignof(T) : huge_page_});
  }
  friend bool operator==(const huge_page_allocator&, const huge_page_allocator&) { return true; }

 private:
  static constexpr std::size_t huge_page_ = std::size_t{1} << 21;
  static constexpr std::size_t least_ = 2 * huge_page_;
};

}  // namespace weft::inline WEFT_ABI::stream
