// SPDX-License-Identifier: BSL-1.0
// What a graph is made of: nodes, one for each visited closure, and entries, one for each object.
#pragma once

#include <weft/task/closure.hpp>
#include <weft/task/node_batch.hpp>

#include <map>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct graph_node;
struct graph_entry;

/// `to` waits for the node whose list this is in.
struct graph_edge {
  graph_node* to;
  graph_edge* next = nullptr;
};

/// Who waits for a node: one after the other is added, until the node ends.
/// *Thread safety*: one thread adds, another one closes.
class waiting_nodes {
 public:
  /// Whether the node has ended. Acquire: what its task did is visible then.
  bool closed() const noexcept { return first_.load(base::memory_order_acquire) == end(); }
  /// *Returns*: false if the node has ended.
  bool add(graph_edge& e) noexcept {
    e.next = first_.load(base::memory_order_acquire);
    do {
      if (e.next == end()) return false;
    } while (!first_.compare_exchange_weak(e.next, &e, base::memory_order_acq_rel));  // pairs with close
    return true;
  }
  /// The node has ended. *Returns*: the last one that was added. *Requires*: not closed.
  graph_edge* close() noexcept { return first_.exchange(end(), base::memory_order_acq_rel); }  // with both

 private:
  /// No edge is there.
  graph_edge* end() const noexcept { return reinterpret_cast<graph_edge*>(const_cast<waiting_nodes*>(this)); }
  base::atomic<graph_edge*> first_{nullptr};
};

/// A member of an entry's current group.
struct graph_member {
  graph_node* node;
  graph_member* next;  ///< the one before it
};

/// A contribution of a node to an object.
struct graph_part {
  graph_node* node;
  std::uint32_t number;  ///< which of the closure's
  graph_entry* entry;
  graph_part* next = nullptr;    ///< the next contribution to the same object, in reference order
  graph_part* beside = nullptr;  ///< the next contribution of the same node
};

/// An object that a node shares with others, but never at the same time.
struct graph_claim {
  graph_entry* entry;
  graph_claim* next;
};

/// A version of an object: memory, and whose value is there. Those of one object form a ring.
struct graph_version {
  void* place;
  const version_kind* kind;
  graph_version* next = nullptr;  ///< in the ring
  graph_node* writer = nullptr;   ///< null: the value from before
  graph_node* users = nullptr;    ///< ends when nobody needs the value any more; null: it is the current one
  bool made = false;              ///< an object is there
  bool overwritten = false;       ///< used by write_back
};

/// One step in the history of an object.
struct graph_renaming {
  graph_version* version;
  graph_node* writer;
  graph_renaming* before;
};

/// An object that has been renamed: its own memory, which is one of its versions, and its history.
struct renamed_object {
  graph_version home;
  graph_renaming* newest = nullptr;
  renamed_object* next = nullptr;
};

/// Tells a task in which version it finds an object.
struct graph_redirection {
  void* place;  ///< where its closure keeps the address
  graph_version* version;
  graph_redirection* next;
};

/// *Thread safety*: `waits` and `out` belong to all; whoever has taken a node has its `dropped` and `next`;
/// `task`, `index`, `priority` are constant, and so are `running`, `level`, `parts`, `claims` and
/// `redirections` once it has been visited. The rest is for the holder of the graph's lock.
struct alignas(16) graph_node {
  explicit graph_node(closure* c, std::uint32_t i = 0, int p = 0, bool r = false) noexcept
      : task(c), index(i), priority(p), running(r) {}

  closure* const task;            ///< null: a join of many
  graph_node* earlier = nullptr;  ///< in the list of all that were visited
  // Side by side, and so in one cache line: each travels from those who end others to who runs it.
  base::atomic<std::uint32_t> waits{1};  ///< for how many; one of them: that it has been visited
  std::uint32_t level = 0;               ///< most tasks in a row that end before it, of those visited
  waiting_nodes out;                     ///< who waits until its contributions, too, are in their objects
  const std::uint32_t index;             ///< in reference order
  const int priority;
  const bool running;          ///< begun, maybe before the frame was promoted
  bool ran = false;            ///< its body has ended, or it was dropped; set without the lock if all
                               ///< that waited for it has been told
  bool dropped = false;        ///< it never ran, and its arguments are gone
  std::uint32_t unfolded = 0;  ///< contributions not yet in their objects
  graph_node* next = nullptr;  ///< in a list of ready, blocked, taken or finished nodes
  graph_part* parts = nullptr;
  graph_claim* claims = nullptr;
  graph_redirection* redirections = nullptr;

  /// Whether nobody waits for it any more.
  bool ended() const noexcept { return out.closed(); }
  /// One that it has waited for has ended, or it has been visited. *Returns*: whether it was the last.
  /// Release and acquire: what all of them did is visible to whoever runs it.
  bool let_go() noexcept { return waits.fetch_sub(1, base::memory_order_acq_rel) == 1; }
};

/// Notes that a closure has ended: for the owner, who may go on without the graph, and for thieves that
/// search the frame then. Relaxed: under the lock of the graph, and they see it behind leave_graph.
inline void tell_closure(closure& c) noexcept {
  if (c.state.load(base::memory_order_relaxed) == closure_state::created)
    c.state.store(closure_state::done, base::memory_order_relaxed);
}

/// A node has ended: calls `ready` for each task that has waited for nothing else. *Thread safety*: whoever
/// has taken the node, with or without the lock of the graph.
template <class Ready>
void release_waiting(graph_node& n, const Ready& ready) noexcept {
  for (const graph_edge* e = n.out.close(); e != nullptr; e = e->next) {
    graph_node& w = *e->to;
    if (!w.let_go() || w.running) continue;
    if (w.task != nullptr)
      ready(w);
    else
      release_waiting(w, ready);  // joins wait for tasks only: no deeper
  }
}

inline graph_node* node_batch::next() noexcept {
  --left;
  return std::exchange(unbegun, unbegun->next);
}
inline void node_batch::keep(graph_node* from, graph_node* to, std::uint32_t count) noexcept {
  if (count == 0) return;
  (unbegun != nullptr ? last->next : unbegun) = from;
  last = to;
  left += count;
  kept += count;
}

/// To be called by whoever is about to run the node's task.
inline void prepare(const graph_node& n) noexcept {
  n.task->privatized = n.parts != nullptr;
  for (const graph_redirection* r = n.redirections; r != nullptr; r = r->next) {
    graph_version& v = *r->version;
    if (!v.made) {  // the writer's: all others come after it
      v.kind->construct(v.place);
      v.made = true;
    }
    base::racy_store(r->place, v.place);
  }
}

/// How the tasks that share an object at the moment do so.
enum class sharing : std::uint8_t { none, reading, contributing, commuting, alone };

/// What a graph knows of one object, or of one part of an array.
struct graph_entry {
  sharing kind = sharing::none;
  bool busy = false;                ///< one of the commuting tasks runs
  bool folding = false;             ///< somebody folds contributions
  const void* operation = nullptr;  ///< of the contributions
  renamed_object* renamed = nullptr;
  graph_version* version = nullptr;  ///< where tasks find a renamed object
  graph_node* gate = nullptr;        ///< what the members wait for
  graph_member* members = nullptr;
  graph_node* blocked = nullptr;     ///< commuting tasks that wait only for others that commute
  graph_part* first_part = nullptr;  ///< contributions in reference order
  graph_part* last_part = nullptr;
  graph_entry* fold_next = nullptr;                        ///< in a list of entries to be folded
  std::map<std::size_t, graph_entry>* segments = nullptr;  ///< of an array: by their first byte
};

/// Acquires the objects on which the node commutes. *Returns*: false if another task uses one of them; the
/// node is among those blocked by it then.
inline bool claim(graph_node& n) noexcept {
  for (graph_claim* c = n.claims; c != nullptr; c = c->next)
    if (c->entry->busy) {
      n.next = std::exchange(c->entry->blocked, &n);
      return false;
    }
  for (graph_claim* c = n.claims; c != nullptr; c = c->next) c->entry->busy = true;
  return true;
}

}  // namespace weft::inline WEFT_ABI::sched
