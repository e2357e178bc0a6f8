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
  static constexpr base::clock::duration unknown{-1}, waited{-2};  ///< in place of a length

  graph_node* unbegun = nullptr;               ///< in the order in which they are executed
  graph_node* last = nullptr;                  ///< of these, if there are any
  graph_node* ended = nullptr;                 ///< the last one first
  std::uint32_t left = 0;                      ///< how many have not begun
  std::uint32_t taken = 0;                     ///< how many were ready in the graph,
  std::uint32_t kept = 0;                      ///< and how many became ready since
  bool untold = false;                         ///< one has ended, and those that wait for it do not know
  base::clock::time_point start{};             ///< when the first one began
  base::clock::duration first_took = unknown;  ///< its body

  /// Whether the first one is the only one that has begun, and how long it takes is to be measured.
  bool in_first() const noexcept { return done() == 1 && first_took == unknown; }

  /// How many have begun.
  std::uint32_t done() const noexcept { return taken + kept - left; }
  // The following are defined in graph_node.hpp, where nodes are known.
  /// The next one begins. *Requires*: there is one.
  graph_node* next() noexcept;
  /// Adds `count` nodes that have become ready.
  void keep(graph_node* from, graph_node* to, std::uint32_t count) noexcept;
};

}  // namespace weft::inline WEFT_ABI::sched
