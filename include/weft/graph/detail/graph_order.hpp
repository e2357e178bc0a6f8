// SPDX-License-Identifier: BSL-1.0
// Which node of a graph waits for which, by the accesses of their closures.
#pragma once

#include <weft/graph/detail/graph_table.hpp>
#include <weft/graph/detail/graph_versions.hpp>

#include <iterator>

namespace weft::inline WEFT_ABI::sched {

/// Makes the nodes of a graph, in reference order, and the edges between them. *Thread safety*: under the
/// lock of the graph.
class graph_order final : private access_visitor {
 public:
  /// *Throws*: std::bad_alloc.
  graph_order() : access_visitor{&see_} {}
  graph_order(const graph_order&) = delete;
  graph_order& operator=(const graph_order&) = delete;

  /// Makes the node of a closure, after all earlier ones: it waits for those and to be let go. *Throws*:
  /// std::bad_alloc; then it may be added again when all earlier ones have ended, or all may be forgotten.
  graph_node& add(closure& c, std::uint32_t index, int priority, bool running) {
    graph_node& n = *(node_ = make_node(&c, index, priority, running));
    wait_for(n, barrier_);
    for (std::size_t i = 0; i < c.what->objects; ++i)
      add({.object = c.objects()[i],
           .mode = c.what->modes[i],
           .place = static_cast<void*>(const_cast<void**>(c.objects() + i)),
           .kind = c.what->kinds != nullptr ? c.what->kinds[i] : nullptr});
    if (c.what->more != nullptr) c.what->more(c, *this);
    return n;
  }
  /// Makes a node that is ordered by wait_for alone. *Throws*: std::bad_alloc.
  graph_node* make_node(closure* c, std::uint32_t index = 0, int priority = 0, bool running = false) {
    return ::new (memory_.allocate(sizeof(graph_node), alignof(graph_node)))
        graph_node(c, index, priority, running);
  }
  /// `n` is to wait for `before`, unless that is null or has ended. *Requires*: `n` has not been let go.
  /// *Throws*: std::bad_alloc.
  void wait_for(graph_node& n, graph_node* before) {
    if (before == nullptr || before == &n || before->ended()) return;
    n.level = std::max(n.level, before->level + (before->task != nullptr));  // a join is no task
    longest_ = std::max(longest_, n.level + 1);
    graph_edge& e = *make(graph_edge{&n});
    n.waits.fetch_add(1, base::memory_order_relaxed);  // released by add, for whoever ends `before`
    if (!before->out.add(e)) n.waits.fetch_sub(1, base::memory_order_relaxed);  // it has just ended
  }
  /// All nodes added later are to wait for this one.
  void all_wait_for(graph_node& n) noexcept { barrier_ = &n; }
  /// How many tasks the longest path has that was seen since clear().
  std::uint32_t longest() const noexcept { return longest_; }
  /// The versions of renamed objects.
  graph_versions& versions() noexcept { return versions_; }
  const graph_versions& versions() const noexcept { return versions_; }
  /// Forgets all nodes and objects, and frees versions.
  void clear() noexcept {
    barrier_ = nullptr;
    longest_ = 1;
    versions_.free();
    table_.clear();
    memory_.release_to(arena_mark{});
  }

 private:
  template <class T>
  T* make(const T& value) {
    return ::new (memory_.allocate(sizeof(T))) T(value);
  }
  static void see_(access_visitor& self, const access& a) { static_cast<graph_order&>(self).add(a); }

  void add(const access& a) {
    const bool contributes = a.mode == access_mode::reduce;
    graph_entry& e = table_.at(a.object, memory_);
    if (!a.sliced) {
      add(e, a);
      if (contributes) contribute(e, a);
      return;
    }
    // Segments are split while tasks wait for them or use them, so all that they hold may be copied. A
    // contribution to a slice is none for its segments.
    if (contributes) contribute(*make(graph_entry{}), a);
    if (a.begin == a.end) return;
    if (e.segments == nullptr) table_.slice(e);
    const auto split = [&e](std::size_t where) {
      const auto before = std::prev(e.segments->upper_bound(where));
      return before->first == where ? before : e.segments->emplace(where, before->second).first;
    };
    const auto last = split(a.end);
    for (auto i = split(a.begin); i != last; ++i) add(i->second, a);
  }
  void add(graph_entry& e, const access& a) {
    graph_node& n = *node_;
    // A task that runs already holds no claim.
    const sharing kind = a.mode == access_mode::read                    ? sharing::reading
                         : a.sliced                                     ? sharing::alone
                         : a.mode == access_mode::reduce                ? sharing::contributing
                         : a.mode == access_mode::commute && !n.running ? sharing::commuting
                                                                        : sharing::alone;
    const bool joins = e.kind == kind && kind != sharing::alone && e.operation == a.operation;
    const bool twice = e.members != nullptr && e.members->node == &n;
    if (twice && (joins || kind == sharing::reading || e.members->next == nullptr)) {
      if (!joins && kind != sharing::reading && e.kind != sharing::alone)
        e.kind = kind;  // the stronger right
    } else if (joins) {
      e.members = make(graph_member{&n, e.members});
      wait_for(n, e.gate);
    } else {
      graph_member* const m = make(graph_member{&n, nullptr});
      graph_node* gate = join_members(e, n);
      if (gate != nullptr && a.kind != nullptr && !twice && !n.running)
        gate = versions_.renew(e, a, n, gate, memory_);
      wait_for(n, gate);
      e.gate = gate;
      e.kind = kind;
      e.operation = a.operation;
      e.members = m;
    }
    if (kind == sharing::commuting) n.claims = make(graph_claim{&e, n.claims});
    if (e.version != nullptr && e.version->place != a.object && a.place != nullptr)
      n.redirections = make(graph_redirection{a.place, e.version, n.redirections});
  }
  /// Notes a contribution, to be folded behind the earlier ones of the entry. A task that runs already makes
  /// it to the object itself, and holds its place.
  void contribute(graph_entry& e, const access& a) {
    graph_part* const p = make(graph_part{.node = node_, .number = a.part, .entry = &e});
    (e.last_part != nullptr ? e.last_part->next : e.first_part) = p;
    e.last_part = p;
    p->beside = std::exchange(node_->parts, p);
    ++node_->unfolded;
  }
  /// *Returns*: a node that ends when all members other than `n` have ended, null if they have.
  graph_node* join_members(graph_entry& e, const graph_node& n) {
    graph_node* single = nullptr;
    graph_node* join = nullptr;
    for (graph_member* m = e.members; m != nullptr; m = m->next) {
      if (m->node == &n || m->node->ended()) continue;
      if (single == nullptr) {
        single = m->node;
        continue;
      }
      if (join == nullptr) {
        join = make_node(nullptr);
        wait_for(*join, single);
      }
      wait_for(*join, m->node);
    }
    if (join == nullptr) return single;
    if (join->let_go()) join->out.close();  // all of them have ended meanwhile
    return join;
  }

  graph_node* node_ = nullptr;  // being added
  std::uint32_t longest_ = 1;
  graph_node* barrier_ = nullptr;  // nobody knows what it accesses: all later ones wait for it
  graph_table table_;
  arena memory_;
  graph_versions versions_;
};

}  // namespace weft::inline WEFT_ABI::sched
