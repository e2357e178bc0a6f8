// SPDX-License-Identifier: BSL-1.0
// What a worker has taken from a graph and not reported.
#pragma once

#include <weft/base/platform.hpp>

#include <cstdint>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

struct graph_node;

/// Nodes of a graph that a worker has taken at once, and those that it keeps because they have become ready
/// when one of these ended. Of the latter the graph knows nothing until the worker hands the batch in.
struct node_batch {
  graph_node* unbegun = nullptr;    ///< in the order in which they are executed
  graph_node* last = nullptr;       ///< of these, if there are any
  graph_node* ended = nullptr;      ///< the last one first
  std::uint32_t left = 0;           ///< how many have not begun
  std::uint32_t taken = 0;          ///< how many were ready in the graph,
  std::uint32_t kept = 0;           ///< and how many became ready since
  bool untold = false;              ///< one has ended, and those that wait for it do not know
  base::clock::time_point start{};  ///< when they were taken

  /// How many have begun.
  std::uint32_t done() const noexcept { return taken + kept - left; }
  // The following are defined in graph_node.hpp, where nodes are known.
  /// The next one begins. *Requires*: there is one.
  graph_node* next() noexcept;
  /// Adds `count` nodes that have become ready.
  void keep(graph_node* from, graph_node* to, std::uint32_t count) noexcept;
};

}  // namespace weft::inline WEFT_ABI::sched
