// SPDX-License-Identifier: BSL-1.0
// The rights of a recurrent task: which locations it writes and reads in every turn.
#pragma once

#include <weft/orwl/location.hpp>

namespace weft::inline WEFT_ABI::orwl {

/// A request that is repeated in every iteration, for the right to write (`Exclusive`) or to read.
template <class T, bool Exclusive>
struct recurrent_request {
  /// The type of the value.
  using value_type = T;
  /// Whether the task writes it.
  static constexpr bool exclusive = Exclusive;

  /// The location.
  location<T>* where;
  /// Its rank among the first requests for the location.
  int rank;
};

/// Requests a location in every turn: the body gets T& for write and const T& for read. First requests for a
/// location are ordered by rank; with equal ranks, by the order in which the tasks post them.
template <class T>
recurrent_request<T, true> write(location<T>& where, int rank = 0) noexcept {
  return {&where, rank};
}
template <class T>
recurrent_request<T, false> read(location<T>& where, int rank = 0) noexcept {
  return {&where, rank};
}

}  // namespace weft::inline WEFT_ABI::orwl
