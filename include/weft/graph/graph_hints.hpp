// SPDX-License-Identifier: BSL-1.0
// What workers read of a graph before they go to its lock: whether there is something to do, and for whom.
#pragma once

#include <weft/graph/graph.hpp>

namespace weft::inline WEFT_ABI::sched {

inline void graph::learn_batch(const node_batch& batch, clock::time_point end, bool by_owner,
                               std::size_t takers) noexcept {
  steal_cooldown& around = owner.load(base::memory_order_relaxed)->cooldown;
  using enum granularity_estimator::length;
  const auto length = speed.learn(batch, end, by_owner, takers);
  if (length == tiny) {
    around.begin(*home->parent, end + granularity::first_cooldown);
    tiny_until.set(end + granularity::first_cooldown);
  }
  if (length == worthwhile) {
    tiny_until.clear();
    around.end();
  }
}

inline void graph::update_hint() noexcept {
  const auto set = []<class T>(base::atomic<T>& hint, T value) {  // a store costs readers their copies
    if (hint.load(base::memory_order_relaxed) != value) hint.store(value, base::memory_order_relaxed);
  };
  set(may_take, ready_.size() != 0);
  const bool low = home != nullptr && !busy_ && !stuck_ && !pausing_ && ready_.size() < enough_ / 2 + 1 &&
                   unvisited() != nullptr;
  set(wants_owner, (low && speed.longer()) || local_.size() != 0 || doomed_.first != nullptr);
  set(may_visit, low);
  set(may_keep, !may_be_kept()                                   ? 0u
                : speed.long_bodies() && ready_.size() < takers_ ? 1u
                                                                 : std::uint32_t{speed.batch()});
}

}  // namespace weft::inline WEFT_ABI::sched
