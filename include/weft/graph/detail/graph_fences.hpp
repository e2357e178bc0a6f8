// SPDX-License-Identifier: BSL-1.0
// The fences of a graph: nodes that wait for all tasks before them in reference order.
#pragma once

#include <weft/graph/graph_node.hpp>

#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// Counts, for each fence, the tasks between the fence before it and itself that have not ended; that fence
/// is one of them. So the first fence whose count is zero has nothing unfinished before it. *Thread safety*:
/// under the lock of the graph. *Cost*: nothing where there are no fences, else a binary search for each task
/// that ends.
class graph_fences {
 public:
  bool any() const noexcept { return !all_.empty(); }
  /// Makes room for one more. *Throws*: std::bad_alloc.
  void expect() { all_.reserve(all_.size() + 1); }
  /// A fence has been visited, behind `unended` other nodes. *Requires*: expect(). *Effects*: it waits, if
  /// there are any.
  void add(graph_node& fence, std::size_t unended) noexcept {
    all_.push_back({&fence, unended - counted_});
    counted_ = unended;
    if (unended != 0)
      fence.waits.fetch_add(1, base::memory_order_relaxed);  // it has not been let go
    else
      ++first_;
  }
  /// A task has ended. *Returns*: the fence that may start now, if there is one.
  graph_node* end(const graph_node& n) noexcept {
    if (all_.empty() || n.task == nullptr || n.index >= all_.back().node->index) return nullptr;
    // A fence is in the group of the next one. By hand: the algorithm costs everybody who includes weft.hpp.
    std::size_t group = 0, end = all_.size();
    while (group != end) {
      const std::size_t middle = group + (end - group) / 2;
      if (all_[middle].node->index <= n.index)
        group = middle + 1;
      else
        end = middle;
    }
    --all_[group].unended;
    --counted_;
    return next_();
  }
  /// *Requires*: all nodes have ended.
  void clear() noexcept {
    all_.clear();
    first_ = 0;
    counted_ = 0;
  }

 private:
  graph_node* next_() noexcept {
    if (first_ == all_.size() || all_[first_].unended != 0) return nullptr;
    graph_node* const f = all_[first_++].node;
    return f->let_go() ? f : nullptr;  // else it waits for a node that is just being released
  }
  struct entry {
    graph_node* node;
    std::size_t unended;
  };
  std::vector<entry> all_;   // in reference order
  std::size_t first_ = 0;    // not started
  std::size_t counted_ = 0;  // sum of all counts
};

}  // namespace weft::inline WEFT_ABI::sched
