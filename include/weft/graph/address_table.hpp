// SPDX-License-Identifier: BSL-1.0
// A hash table from the addresses of objects to what is known of them; emptied in O(1).
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

/// Objects that lie side by side have their slots side by side: tasks that follow one another mostly use
/// such. *Requires*: V is default-constructible, cheap to copy. *Thread safety*: one thread at a time.
template <class V>
class address_table {
 public:
  /// Forgets all objects.
  void clear() noexcept {
    used_ = 0;
    if (++generation_ != 0) return;
    for (std::size_t i = 0; slots_ != nullptr && i <= mask_; ++i) slots_[i].generation = 0;
    generation_ = 1;
  }
  /// *Returns*: what is known of an object, null if nothing is.
  const V* find(const void* object) const noexcept {
    if (slots_ == nullptr) return nullptr;
    const slot& s = slots_[place_of(object)];
    return s.generation == generation_ ? &s.value : nullptr;
  }
  /// *Returns*: what is known of an object, a new V{} if nothing is; good until the next call. *Throws*:
  /// std::bad_alloc.
  V& at(const void* object) {
    if (slots_ == nullptr) slots_ = std::make_unique<slot[]>(mask_ + 1);
    slot* s = &slots_[place_of(object)];
    if (s->generation == generation_) return s->value;
    if (2 * used_ > mask_) {
      grow();
      s = &slots_[place_of(object)];
    }
    ++used_;
    *s = {object, V{}, generation_};
    return s->value;
  }

 private:
  struct slot {
    const void* object = nullptr;
    V value{};
    std::uint32_t generation = 0;
  };
  static constexpr std::size_t neighbours = 64;  // slots for this many words of memory, side by side

  std::size_t place_of(const void* object) const noexcept {
    const std::uintptr_t word = reinterpret_cast<std::uintptr_t>(object) / sizeof(void*);
    const std::uintptr_t mixed = (word / neighbours) * 0x9E3779B97F4A7C15ull >> 20;
    // The second term keeps objects that are far apart, and alike in their last bits, from meeting.
    std::size_t i = mixed * neighbours + ((word ^ mixed >> 16) & (neighbours - 1));
    for (i &= mask_; slots_[i].generation == generation_ && slots_[i].object != object;)
      i = (i + neighbours + 1) & mask_;
    return i;
  }
  void grow() {
    const std::size_t size = 2 * (mask_ + 1);
    auto old = std::make_unique<slot[]>(size);
    std::swap(old, slots_);
    const std::size_t old_size = std::exchange(mask_, size - 1) + 1;
    for (std::size_t i = 0; i < old_size; ++i)
      if (old[i].generation == generation_) slots_[place_of(old[i].object)] = old[i];
  }

  std::size_t mask_ = 4 * neighbours - 1;
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
  std::unique_ptr<slot[]> slots_;
};

}  // namespace weft::inline WEFT_ABI::sched
