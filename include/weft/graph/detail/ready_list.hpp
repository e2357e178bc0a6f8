// SPDX-License-Identifier: BSL-1.0
// Ready nodes of a graph: most urgent first, and first come, first served among equals.
#pragma once

#include <weft/graph/graph_node.hpp>

#include <algorithm>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// First come, first served.
struct node_queue {
  graph_node* first = nullptr;
  graph_node* last = nullptr;

  void push_back(graph_node& n) noexcept {
    n.next = nullptr;
    (last != nullptr ? last->next : first) = &n;
    last = &n;
  }
  /// *Returns*: null if there is none.
  graph_node* pop_front() noexcept {
    graph_node* const n = first;
    if (n != nullptr) first = n->next;
    if (first == nullptr) last = nullptr;
    return n;
  }
};

/// *Thread safety*: under the lock of its graph. *Cost*: constant where priorities are equal, else
/// logarithmic in the number of different ones, and a step for each of those that nodes had before.
class ready_list {
 public:
  /// Makes room for nodes of this priority. *Throws*: std::bad_alloc.
  void expect(int priority) {
    const std::size_t i = level_of(priority);
    if (i == levels_.size() || levels_[i].priority != priority)
      levels_.insert(levels_.begin() + static_cast<std::ptrdiff_t>(i), level{priority});
  }
  /// *Requires*: the priority was expected.
  void push_back(graph_node& n) noexcept {
    const std::size_t i = level_of(n.priority);
    levels_[i].nodes.push_back(n);
    if (i < first_ || size_ == 0) first_ = i;
    ++size_;
  }
  /// *Returns*: the most urgent, null if there is none.
  graph_node* front() const noexcept {
    if (size_ == 0) return nullptr;
    return levels_[first_used_()].nodes.first;
  }
  /// Whether it may wait for earlier tasks. In a batch others would wait for it, maybe those that it waits
  /// for.
  bool first_may_wait_for_earlier() const noexcept {
    const graph_node* const n = front();
    return n != nullptr && n->task->may_wait_for_earlier;
  }
  /// Takes it out.
  graph_node* pop_front() noexcept {
    if (size_ == 0) return nullptr;
    const std::size_t i = first_used_();
    if (i != first_) first_ = i;
    --size_;
    return levels_[i].nodes.pop_front();
  }
  /// Puts the first that is `wanted`, among some of the most urgent, in front of its equals.
  /// *Returns*: it; null if there is none.
  template <class Wanted>
  graph_node* bring_to_front(Wanted wanted) noexcept {
    if (size_ == 0) return nullptr;
    constexpr unsigned most = 64;
    node_queue& l = levels_[first_used_()].nodes;
    graph_node* before = nullptr;
    unsigned seen = 0;
    for (graph_node* n = l.first; n != nullptr && seen < most; before = n, n = n->next, ++seen) {
      if (!wanted(*n)) continue;
      if (before == nullptr) return n;
      before->next = n->next;
      if (l.last == n) l.last = before;
      n->next = std::exchange(l.first, n);
      return n;
    }
    return nullptr;
  }
  /// Moves all that are `unwanted` to the end of another list.
  template <class Unwanted>
  void move_out(Unwanted unwanted, node_queue& to) noexcept {
    for (level& l : levels_) {
      node_queue all = std::exchange(l.nodes, {});
      while (graph_node* const n = all.pop_front()) {
        const bool out = unwanted(*n);
        size_ -= out;
        (out ? to : l.nodes).push_back(*n);
      }
    }
  }
  std::size_t size() const noexcept { return size_; }
  /// The priority of all that were expected; null if there are several, or none was.
  const int* only_priority() const noexcept {
    return levels_.size() == 1 ? &levels_.front().priority : nullptr;
  }
  /// How many different priorities were expected.
  std::size_t levels() const noexcept { return levels_.size(); }
  /// Forgets all nodes and expectations.
  void clear() noexcept {
    levels_.clear();
    size_ = 0;
  }

 private:
  struct level {
    int priority;
    node_queue nodes{};
  };

  std::size_t level_of(int priority) const noexcept {
    if (!levels_.empty() && levels_.front().priority == priority) return 0;
    const auto found = std::partition_point(levels_.begin(), levels_.end(),
                                            [priority](const level& l) { return l.priority > priority; });
    return static_cast<std::size_t>(found - levels_.begin());
  }
  /// *Requires*: there is a node.
  std::size_t first_used_() const noexcept {
    std::size_t i = first_;
    while (levels_[i].nodes.first == nullptr) ++i;
    return i;
  }

  std::vector<level> levels_;  // most urgent first
  std::size_t size_ = 0;
  std::size_t first_ = 0;  // if there is a node, none is on a level before this one
};

/// The list whose first node comes first; nodes of two lists are told apart by their place in reference
/// order.
inline ready_list& more_urgent(ready_list& a, ready_list& b) noexcept {
  const graph_node* const x = a.front();
  const graph_node* const y = b.front();
  if (x == nullptr || y == nullptr) return x != nullptr ? a : b;
  return y->priority > x->priority || (y->priority == x->priority && y->index < x->index) ? b : a;
}

}  // namespace weft::inline WEFT_ABI::sched
