// SPDX-License-Identifier: BSL-1.0
// The objects that a graph knows: a hash table that is emptied in O(1).
#pragma once

#include <weft/sched/arena.hpp>
#include <weft/sched/graph_node.hpp>

#include <deque>
#include <memory>
#include <utility>

namespace weft::sched {

/// *Thread safety*: under the lock of its graph.
class graph_table {
 public:
  /// Forgets all objects; their entries are the caller's arena's.
  void clear() noexcept {
    arrays_.clear();
    used_ = 0;
    if (++generation_ != 0) return;
    for (std::size_t i = 0; slots_ != nullptr && i <= mask_; ++i) slots_[i].generation = 0;
    generation_ = 1;
  }
  /// *Returns*: the entry of an object, made in `memory` if it is new. *Throws*: std::bad_alloc.
  graph_entry& at(const void* object, arena& memory) {
    if (slots_ == nullptr) slots_ = std::make_unique<slot[]>(mask_ + 1);
    slot* s = &slots_[find(object)];
    if (s->generation != generation_) {
      if (2 * used_ > mask_) {
        grow();
        s = &slots_[find(object)];
      }
      auto* const e = ::new (memory.allocate(sizeof(graph_entry))) graph_entry;
      *s = {object, e, generation_};
      ++used_;
    }
    return *s->entry;
  }
  /// Makes an entry the entry of a sliced array: all of it is one segment. *Throws*: std::bad_alloc.
  void slice(graph_entry& e) {
    arrays_.emplace_back().emplace(0, graph_entry{});
    e.segments = &arrays_.back();
  }

 private:
  struct slot {
    const void* object = nullptr;
    graph_entry* entry = nullptr;
    std::uint32_t generation = 0;
  };

  std::size_t find(const void* object) const noexcept {
    std::size_t i = (reinterpret_cast<std::uintptr_t>(object) >> 3) * 0x9E3779B97F4A7C15ull >> 20;
    for (i &= mask_; slots_[i].generation == generation_ && slots_[i].object != object;) i = (i + 1) & mask_;
    return i;
  }
  void grow() {
    const std::size_t size = 2 * (mask_ + 1);
    auto old = std::make_unique<slot[]>(size);
    std::swap(old, slots_);
    const std::size_t old_size = std::exchange(mask_, size - 1) + 1;
    for (std::size_t i = 0; i < old_size; ++i)
      if (old[i].generation == generation_) slots_[find(old[i].object)] = old[i];
  }

  std::size_t mask_ = 255;
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
  std::unique_ptr<slot[]> slots_;
  std::deque<std::map<std::size_t, graph_entry>> arrays_;
};

}  // namespace weft::sched
