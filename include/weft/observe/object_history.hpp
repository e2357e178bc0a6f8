// SPDX-License-Identifier: BSL-1.0
// Which earlier tasks a task must wait for, when all are met in reference order.
#pragma once

#include <weft/task/access.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// An access to an object of which there is a history.
struct known_access {
  std::uint32_t object;  ///< its place in the history
  sched::access_mode mode;
  std::size_t begin, end;  ///< the part of it, in bytes; all: to the largest number
  const void* operation;

  /// Whether it is on no part of its object at all.
  bool is_empty() const noexcept { return begin == end; }
};

/// The accesses to the objects of a run. Members is what is kept of the tasks of one group, who may run at
/// the same time on the same part of an object. *Thread safety*: one thread at a time.
///
/// An object is known as long as the body lasts in which it was first met: whatever is below has its rights
/// from there, and later another object may have its address. So the objects that are known are a stack.
template <class Members>
class object_history {
 public:
  struct group {
    std::size_t begin, end;
    sched::access_mode mode;
    const void* operation;
    Members members;

    /// Whether a task with this access belongs to the same group.
    bool takes(sched::access_mode m, const void* op) const noexcept {
      using sched::access_mode;
      return mode == m && (mode == access_mode::read || mode == access_mode::commute ||
                           (mode == access_mode::reduce && operation == op));
    }
    bool shares_with(const group& g) const noexcept { return takes(g.mode, g.operation); }
    bool is_exclusive() const noexcept { return !shares_with(*this); }
  };

  object_history() : first_(64) {}

  void clear() noexcept { forget_from(0); }
  /// How many objects are known. What a body meets first lies behind as many as there were before.
  std::uint32_t size() const noexcept { return size_; }
  /// Forgets those that were met when so many were known.
  WEFT_ALWAYS_INLINE void forget_from(std::uint32_t first) noexcept {
    while (size_ > first) [[unlikely]]
      forget_last_();
  }
  /// The object has ended: another one may have its address soon. *Requires*: all tasks with an access to it
  /// have ended. `first`: how many objects were known when the running body began.
  void end(const void* object, std::uint32_t first) noexcept {
    const std::uint32_t i = find_(object);
    if (i == nowhere) return;
    if (i + 1 == size_ && i >= first)
      forget_last_();
    else
      objects_[i].groups.clear();
  }

  /// Makes the object known in the running body.
  known_access meet(const sched::access& a) {
    std::uint32_t i = find_(a.object);
    if (i == nowhere) i = add_(a.object);
    return {i, a.mode, a.sliced ? a.begin : 0, a.sliced ? a.end : SIZE_MAX, a.operation};
  }
  /// Calls `see` with each group that a task with this access must wait for, but for those that are implied
  /// by others. *Requires*: the access is not empty.
  template <class See>
  void each_before(const known_access& a, See see) const {
    const auto& groups = objects_[a.object].groups;
    const group* covering = nullptr;  // what conflicts with it has been waited for by its members
    for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
      if (g->end <= a.begin || a.end <= g->begin || g->takes(a.mode, a.operation) ||
          !sched::conflict(g->mode, a.mode))
        continue;
      if (covering != nullptr && !covering->shares_with(*g)) continue;
      see(*g);
      if (covering != nullptr || a.begin < g->begin || g->end < a.end) continue;
      if (g->is_exclusive()) break;
      covering = &*g;
    }
  }
  /// The members of the group that a task with this access joins. *Requires*: the access is not empty.
  Members& join(const known_access& a) {
    auto& groups = objects_[a.object].groups;
    for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
      if (g->end <= a.begin || a.end <= g->begin) continue;
      if (g->takes(a.mode, a.operation) && g->begin == a.begin && g->end == a.end) return g->members;
      if (!g->takes(a.mode, a.operation)) break;
    }
    if (a.mode == sched::access_mode::write || a.mode == sched::access_mode::update)
      std::erase_if(groups, [&a](const group& g) { return a.begin <= g.begin && g.end <= a.end; });
    return groups.emplace_back(group{a.begin, a.end, a.mode, a.operation, {}}).members;
  }

 private:
  struct past {
    const void* key = nullptr;
    std::uint32_t below = 0;    // an older one with the same hash, as in first_
    std::vector<group> groups;  // its memory is kept for the next object
  };
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  std::uint32_t& first_of_(const void* key) noexcept {
    const std::uint64_t spread = reinterpret_cast<std::uintptr_t>(key) * 0x9E37'79B9'7F4A'7C15u;
    return first_[(spread >> 32) & (first_.size() - 1)];
  }
  std::uint32_t find_(const void* key) noexcept {
    std::uint32_t i = first_of_(key);
    while (i != 0 && objects_[i - 1].key != key) i = objects_[i - 1].below;
    return i - 1;
  }
  std::uint32_t add_(const void* key) {
    if (size_ == objects_.size()) grow_();
    past& o = objects_[size_];
    o.key = key;
    o.below = std::exchange(first_of_(key), size_ + 1);
    return size_++;
  }
  void grow_() {
    objects_.emplace_back();
    if (objects_.size() <= first_.size() / 2) return;
    first_.assign(2 * first_.size(), 0);
    for (std::uint32_t i = 0; i < size_; ++i)
      objects_[i].below = std::exchange(first_of_(objects_[i].key), i + 1);
  }
  WEFT_NOINLINE void forget_last_() noexcept {
    past& o = objects_[--size_];
    first_of_(o.key) = o.below;  // it is the youngest of all
    o.groups.clear();
  }

  std::vector<past> objects_;  // those that are known, and memory for more
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> first_;  // by hash: one more than the place of the youngest; a power of two
};

}  // namespace weft::inline WEFT_ABI::observe
