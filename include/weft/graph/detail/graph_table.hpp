// SPDX-License-Identifier: BSL-1.0
// The objects that a graph knows.
#pragma once

#include <weft/graph/address_table.hpp>
#include <weft/graph/graph_node.hpp>
#include <weft/memory/arena.hpp>

#include <deque>

namespace weft::inline WEFT_ABI::sched {

/// *Thread safety*: under the lock of its graph.
class graph_table {
 public:
  /// Forgets all objects; their entries are the caller's arena's.
  void clear() noexcept {
    arrays_.clear();
    entries_.clear();
  }
  /// *Returns*: the entry of an object, made in `memory` if it is new. *Throws*: std::bad_alloc.
  graph_entry& at(const void* object, arena& memory) {
    graph_entry*& e = entries_.at(object);
    if (e == nullptr) e = ::new (memory.allocate(sizeof(graph_entry))) graph_entry;
    return *e;
  }
  /// Makes an entry the entry of a sliced array: all of it is one segment. *Throws*: std::bad_alloc.
  void slice(graph_entry& e) {
    arrays_.emplace_back().emplace(0, graph_entry{});
    e.segments = &arrays_.back();
  }

 private:
  address_table<graph_entry*> entries_;
  std::deque<std::map<std::size_t, graph_entry>> arrays_;
};

}  // namespace weft::inline WEFT_ABI::sched
