// SPDX-License-Identifier: BSL-1.0
// What a graph is made of: nodes, one for each visited closure, and entries, one for each object.
#pragma once

#include <weft/task/closure.hpp>

#include <map>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct graph_node;
struct graph_entry;

/// `to` waits for the node whose list this is in.
struct graph_edge {
  graph_node* to;
  graph_edge* next;
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

/// *Thread safety*: everything under the lock of the graph; `task` is constant, and so are `parts` and
/// `redirections` once the node is ready.
struct graph_node {
  closure* task;        ///< null: a join of many
  std::uint32_t index;  ///< in reference order
  int priority = 0;
  bool running = false;        ///< begun, maybe before the frame was promoted
  bool ran = false;            ///< its body has ended, or it was dropped
  bool dropped = false;        ///< it never ran, and its arguments are gone
  bool ended = false;          ///< and its contributions are in their objects
  std::uint32_t waits = 0;     ///< for how many
  std::uint32_t unfolded = 0;  ///< contributions not yet in their objects
  graph_edge* out = nullptr;   ///< who waits for this
  graph_node* next = nullptr;  ///< in a list of ready, blocked, taken or finished nodes
  graph_part* parts = nullptr;
  graph_claim* claims = nullptr;
  graph_redirection* redirections = nullptr;
};

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
