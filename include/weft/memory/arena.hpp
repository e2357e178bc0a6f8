// SPDX-License-Identifier: BSL-1.0
// A bump stack on linked blocks: allocation is an addition and a comparison, release is a store.
#pragma once

#include <weft/base/config.hpp>
#include <weft/context/race_hooks.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace weft::inline WEFT_ABI::sched {

/// A position in an arena, to return to.
struct arena_mark {
  std::byte* top = nullptr;
  std::byte* end = nullptr;
};

/// Memory in last-in-first-out order, without per-allocation records. Blocks stay for reuse until the arena
/// dies. Alignment is `grain` bytes unless asked for more. *Thread safety*: one thread at a time. *Source*:
/// the linked task stack of KAAPI (Gautier, Besseron, Pigeon, PASCO'07, section 2.2).
class arena {
 public:
  static constexpr std::size_t grain = 8;
  static constexpr std::size_t first_block = std::size_t{1} << 14, largest_block = std::size_t{1} << 20;

  arena() = default;
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena() {
    for (block* b = first_; b != nullptr;) {
      block* next = b->next;
      ::operator delete(b->begin);
      b = next;
    }
  }

  /// *Returns*: `size` bytes aligned to `alignment`, or null where the current block has not enough room.
  /// *Cost*: some four instructions.
  WEFT_ALWAYS_INLINE void* try_allocate(std::size_t size, std::size_t alignment = grain) noexcept {
    return fits(size, alignment) ? allocate_here(size, alignment) : nullptr;
  }
  /// *Returns*: the same from any block. *Throws*: std::bad_alloc.
  WEFT_ALWAYS_INLINE void* allocate(std::size_t size, std::size_t alignment = grain) {
    if (!fits(size, alignment)) [[unlikely]]
      return allocate_in_next_block(size, alignment);
    return allocate_here(size, alignment);
  }
  /// Whether the current block has room.
  WEFT_ALWAYS_INLINE bool fits(std::size_t size, std::size_t alignment = grain) const noexcept {
    return after(alignment > grain ? align(top_, alignment) : top_, size) <= end_;
  }
  /// *Requires*: fits().
  WEFT_ALWAYS_INLINE void* allocate_here(std::size_t size, std::size_t alignment = grain) noexcept {
    std::byte* const p = alignment > grain ? align(top_, alignment) : top_;
    top_ = after(p, size);
#if WEFT_RACES
    context::races::forget(p, size);
#endif
    return p;
  }
  /// Like allocate; where memory is out, dips into the reserve that each block keeps. *Returns*: maybe null.
  WEFT_COLD void* allocate_last_resort(std::size_t size) noexcept {
    if (void* p = try_allocate(size)) return p;
    try {
      return allocate_in_next_block(size, grain);
    } catch (const std::bad_alloc&) {
      std::byte* p = top_;
      if (p == nullptr || after(p, size) > end_ + reserve) return nullptr;
      top_ = after(p, size);
      return p;
    }
  }

  /// Makes sure that there is a first block, so that its reserve is there when memory is out. *Throws*:
  /// std::bad_alloc.
  void prepare() {
    if (first_ != nullptr) return;
    allocate_in_next_block(grain, grain);
    release_to(arena_mark{});
  }

  /// The bytes behind the last allocation.
  std::byte* top() const noexcept { return top_; }
  arena_mark mark() const noexcept { return {top_, end_}; }
  /// Releases everything allocated since the mark was taken.
  void release_to(arena_mark m) noexcept {
    top_ = m.top;
    end_ = m.end;
  }
  /// Releases the allocation at `p` and all above it. *Requires*: it lies in the current block.
  void release_to(void* p) noexcept { top_ = static_cast<std::byte*>(p); }

 private:
  static constexpr std::size_t reserve = 256;

  /// Stands behind the reserve at the end of each block, so that end_ finds it.
  struct block {
    block* next;
    std::byte* begin;
    std::size_t size;  // usable bytes
  };

  static std::byte* align(std::byte* p, std::size_t alignment) noexcept {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + alignment - 1) &
                                        ~(alignment - 1));
  }
  static std::byte* after(std::byte* p, std::size_t size) noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) +
                                        ((size + (grain - 1)) & ~(grain - 1)));
  }

  WEFT_COLD void* allocate_in_next_block(std::size_t size, std::size_t alignment) {
    const std::size_t need = size + alignment;
    block* here = end_ != nullptr ? reinterpret_cast<block*>(end_ + reserve) : nullptr;
    block*& link = here != nullptr ? here->next : first_;
    if (link == nullptr || link->size < need) {
      const std::size_t usual = here == nullptr                  ? first_block
                                : here->size < largest_block / 2 ? here->size * 2
                                                                 : largest_block;
      const std::size_t usable = ((usual < need ? need : usual) + (grain - 1)) & ~(grain - 1);
      auto* begin = static_cast<std::byte*>(::operator new(usable + reserve + sizeof(block)));
      // A successor that is too small stays in the list behind the new block.
      link = ::new (begin + usable + reserve) block{link, begin, usable};
    }
    end_ = link->begin + link->size;
    top_ = link->begin;
    return allocate_here(size, alignment);
  }

  // `top_` is written all the time and `end_` hardly ever: apart, so that no compiler reads them as one
  // vector, which would wait for the store of `top_`.
  std::byte* top_ = nullptr;
  block* first_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::sched
