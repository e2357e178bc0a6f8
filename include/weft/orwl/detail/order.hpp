// SPDX-License-Identifier: BSL-1.0
// Who waits for whom in an overlay: the queues of its locations as a marked graph, and the cycle if it cannot
// live.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::inline WEFT_ABI::orwl::detail {

/// One recurrent request: in every iteration the task asks for the location.
struct claim {
  std::uint32_t task;
  std::uint32_t location;
  int rank;  ///< among the first requests for the location
  bool exclusive;
};

/// Each turn of `to` waits for one turn of `from`: the same iteration's, or, with a token, the one before.
struct arc {
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t location;  ///< one that asks for this order
  bool token;
};

/// Derives the order that the queues enforce if every task posts its next requests before it releases.
/// `place`: when each task posts its first requests. *Returns*: the arcs, sorted by `from`, at most one from
/// a task to another: the stricter one. *Throws*: std::bad_alloc. *Cost*: O(n log n) for n claims.
///
/// A queue repeats its first round for ever, since whoever leaves its head stands at its tail already. Shared
/// requests at the two ends of the round meet, and are granted together.
/// *Source*: marked graphs of Commoner, Holt, Even and Pnueli; one token per cycle of a location.
template <class = void>  // compiled where it is used
std::vector<arc> arcs_of(std::vector<claim> claims, std::span<const std::uint32_t> place);

/// Where the arcs of each task begin. *Requires*: they are sorted by `from`.
template <class = void>
std::vector<std::uint32_t> begins_of(std::span<const arc> arcs, std::size_t tasks);

/// Finds tasks that would wait for each other in the first iteration: then, and only then, some never get a
/// turn. *Requires*: arcs sorted by `from`. *Returns*: the arcs of such a cycle, each beginning where the one
/// before ends; none if there is no cycle. *Throws*: std::bad_alloc. *Cost*: O(tasks + arcs).
template <class = void>
std::vector<arc> find_cycle(std::span<const arc> arcs, std::size_t tasks);

}  // namespace weft::inline WEFT_ABI::orwl::detail
