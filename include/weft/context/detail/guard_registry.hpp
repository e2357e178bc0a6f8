// SPDX-License-Identifier: BSL-1.0
// The process-wide list of guarded stacks, readable from a signal handler.
#pragma once

#include <weft/base/atomic.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

namespace weft::inline WEFT_ABI::context::detail {

/// One guarded stack: the guard is [guard, lowest), the usable part [lowest, top). Who may touch it when:
/// 1. the thread that claimed it (bit of its word set by that thread) writes all fields, `guard` last;
/// 2. everybody may read at any time; `guard == 0` means that the rest is meaningless;
/// 3. the thread that destroys the stack clears `guard` and then gives the bit back.
/// A fault in a guard concerns a stack that somebody is executing on, so its entry is stable; entries of
/// other stacks may change under the reader, which can only make it look at addresses in vain.
struct guard_entry {
  base::atomic<std::uintptr_t> guard{0};
  base::atomic<std::uintptr_t> lowest{0};
  base::atomic<std::uintptr_t> top{0};
  base::atomic<const void*> owner{nullptr};
};

/// Bounds found by a reader. size() is 0 when nothing was found.
struct stack_bounds {
  std::uintptr_t lowest = 0;
  std::uintptr_t top = 0;
  std::size_t size() const noexcept { return top - lowest; }
};

/// Blocks of entries, linked, never freed: a handler may be anywhere in them at any time.
/// *Thread safety*: every member from any thread; find() and for_each() also from a signal handler.
class guard_registry {
 public:
  /// Claims an entry and publishes the stack. *Throws*: std::bad_alloc, and then nothing has changed.
  guard_entry& enter(std::uintptr_t guard, std::uintptr_t lowest, std::uintptr_t top, const void* owner) {
    guard_entry& entry = claim();
    // Relaxed: published by the release store of guard.
    entry.lowest.store(lowest, base::memory_order_relaxed);
    entry.top.store(top, base::memory_order_relaxed);
    entry.owner.store(owner, base::memory_order_relaxed);
    entry.guard.store(guard, base::memory_order_release);  // pairs with the acquire in for_each
    return entry;
  }

  /// Withdraws an entry of enter(). *Cost*: one pass over the blocks before the entry's.
  void leave(guard_entry& entry) noexcept {
    entry.guard.store(0, base::memory_order_relaxed);  // ordered by the release in give_back
    for (block* place = &first_; place != nullptr; place = place->next.load(base::memory_order_acquire)) {
      // Compared as integers: entry may belong to another block.
      const auto offset =
          reinterpret_cast<std::uintptr_t>(&entry) - reinterpret_cast<std::uintptr_t>(place->entries);
      if (offset >= sizeof place->entries) continue;
      const std::size_t index = offset / sizeof(guard_entry);
      // Release pairs with the acquire in claim: the next owner's stores come after the clearing of guard.
      place->used[index / bits].fetch_and(~(std::uint64_t{1} << index % bits), base::memory_order_release);
      return;
    }
  }

  /// Calls f(entry, bounds) for every published stack until it returns false.
  template <class F>
  void for_each(F&& f) const noexcept {
    // Acquire pairs with the release that linked the block.
    for (const block* place = &first_; place != nullptr;
         place = place->next.load(base::memory_order_acquire)) {
      for (std::size_t word = 0; word < words; ++word) {
        // Relaxed: a hint where to look; guard tells whether the entry means anything.
        std::uint64_t used = place->used[word].load(base::memory_order_relaxed);
        for (; used != 0; used &= used - 1) {
          const guard_entry& entry =
              place->entries[word * bits + static_cast<unsigned>(std::countr_zero(used))];
          const auto guard = entry.guard.load(base::memory_order_acquire);  // pairs with enter
          if (guard == 0) continue;
          // Relaxed: written before the release store of guard.
          const stack_bounds bounds{entry.lowest.load(base::memory_order_relaxed),
                                    entry.top.load(base::memory_order_relaxed)};
          if (!f(guard, bounds, entry.owner.load(base::memory_order_relaxed))) return;
        }
      }
    }
  }

  /// The stack in whose guard the address lies; its size() is 0 if there is none.
  stack_bounds find(std::uintptr_t address) const noexcept {
    stack_bounds found;
    for_each([&](std::uintptr_t guard, stack_bounds bounds, const void*) noexcept {
      if (address < guard || address >= bounds.lowest) return true;
      found = bounds;
      return false;
    });
    return found;
  }

 private:
  static constexpr std::size_t bits = 64;
  static constexpr std::size_t words = 16;
  struct block {
    base::atomic<std::uint64_t> used[words] = {};
    guard_entry entries[words * bits];
    base::atomic<block*> next{nullptr};
  };

  guard_entry& claim() {
    for (block* place = &first_;;) {
      for (std::size_t word = 0; word < words; ++word) {
        auto used = place->used[word].load(base::memory_order_relaxed);  // relaxed: the exchange checks it
        while (~used != 0) {
          const auto bit = static_cast<unsigned>(std::countr_one(used));
          // Acquire pairs with the release in leave.
          if (place->used[word].compare_exchange_weak(used, used | std::uint64_t{1} << bit,
                                                      base::memory_order_acquire, base::memory_order_relaxed))
            return place->entries[word * bits + bit];
        }
      }
      block* next = place->next.load(base::memory_order_acquire);  // pairs with the release just below
      if (next == nullptr) {
        auto* const made = new block;
        if (place->next.compare_exchange_strong(next, made, base::memory_order_release,
                                                base::memory_order_acquire))
          next = made;
        else
          delete made;
      }
      place = next;
    }
  }

  block first_;
};

/// The one registry of the process. Constant-initialised: stacks may be made before main.
WEFT_PER_PROCESS inline constinit guard_registry guards;

}  // namespace weft::inline WEFT_ABI::context::detail
