// SPDX-License-Identifier: BSL-1.0
// Which earlier tasks a task must wait for, when all are met in reference order.
#pragma once

#include <weft/task/access.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// The accesses to the objects of a run. Members is what is kept of the tasks of one group, who may run at
/// the same time on the same part of an object. *Thread safety*: one thread at a time.
///
/// An object is known as long as the body lasts in which it was first met: whatever is below has its rights
/// from there, and later another object may have its address.
template <class Members>
class object_history {
 public:
  struct group {
    std::size_t begin, end;
    sched::access_mode mode;
    const void* operation;
    Members members;

    /// Whether a task with this access belongs to the same group.
    bool takes(const sched::access& a) const noexcept {
      using sched::access_mode;
      return mode == a.mode && (mode == access_mode::read || mode == access_mode::commute ||
                                (mode == access_mode::reduce && operation == a.operation));
    }
    bool shares_with(const group& g) const noexcept {
      return takes({nullptr, g.mode, false, 0, 0, g.operation});
    }
    bool is_exclusive() const noexcept { return !shares_with(*this); }
  };

  /// A body begins. The history forgets, when it ends, what was first met in it.
  void begin_body() {
    if (depth_ == met_.size()) met_.emplace_back();
    ++depth_;
  }
  void end_body() noexcept {
    auto& met = met_[--depth_];
    for (const void* object : met) forget(object);
    met.clear();
  }
  void clear() noexcept {
    objects_.clear();
    met_.clear();
    spare_.clear();
    depth_ = 0;
  }

  /// Whether the access is on no part of its object at all.
  static bool is_empty(const sched::access& a) noexcept { return a.sliced && a.begin == a.end; }
  /// Makes the object known in the running body.
  void meet(const void* object) {
    bool fresh = false;
    if (spare_.empty()) {
      fresh = objects_.try_emplace(object).second;
    } else {
      spare_.back().key() = object;
      auto inserted = objects_.insert(std::move(spare_.back()));
      if (inserted.inserted)
        spare_.pop_back();
      else
        spare_.back() = std::move(inserted.node);
      fresh = inserted.inserted;
    }
    if (fresh && depth_ != 0) met_[depth_ - 1].push_back(object);
  }
  /// Calls `see` with each group that a task with this access must wait for, but for those that are implied
  /// by others. *Requires*: it was met; the access is not empty.
  template <class See>
  void each_before(const sched::access& a, See see) const {
    const auto [begin, end] = extent(a);
    const auto& groups = objects_.at(a.object);
    const group* covering = nullptr;  // what conflicts with it has been waited for by its members
    for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
      if (g->end <= begin || end <= g->begin || g->takes(a) || !sched::conflict(g->mode, a.mode)) continue;
      if (covering != nullptr && !covering->shares_with(*g)) continue;
      see(*g);
      if (covering != nullptr || begin < g->begin || g->end < end) continue;
      if (g->is_exclusive()) break;
      covering = &*g;
    }
  }
  /// The members of the group that a task with this access joins. *Requires*: it was met.
  Members& join(const sched::access& a) {
    const auto [begin, end] = extent(a);
    auto& groups = objects_.at(a.object);
    for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
      if (g->end <= begin || end <= g->begin) continue;
      if (g->takes(a) && g->begin == begin && g->end == end) return g->members;
      if (!g->takes(a)) break;
    }
    if (a.mode == sched::access_mode::write || a.mode == sched::access_mode::update)
      std::erase_if(
          groups, [first = begin, last = end](const group& g) { return first <= g.begin && g.end <= last; });
    groups.push_back({begin, end, a.mode, a.operation, {}});
    return groups.back().members;
  }

 private:
  static std::pair<std::size_t, std::size_t> extent(const sched::access& a) noexcept {
    return a.sliced ? std::pair(a.begin, a.end) : std::pair(std::size_t{0}, SIZE_MAX);
  }

  using table = std::unordered_map<const void*, std::vector<group>>;

  void forget(const void* object) noexcept {
    auto node = objects_.extract(object);
    node.mapped().clear();
    try {
      spare_.push_back(std::move(node));
    } catch (const std::bad_alloc&) {  // then it goes
    }
  }

  table objects_;
  std::vector<typename table::node_type> spare_;  // with the memory of their groups, for the next objects
  std::vector<std::vector<const void*>> met_;     // of the bodies around, and memory for deeper ones
  std::size_t depth_ = 0;
};

}  // namespace weft::inline WEFT_ABI::observe
