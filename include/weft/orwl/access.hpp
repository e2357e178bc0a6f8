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
  /// Place among the first requests for it.
  int rank;
};

/// Asks for a location in every turn: the body gets T& for write and const T& for read. Among the first
/// requests for the location those with smaller ranks come first; with equal ranks, those of tasks that post
/// earlier.
template <class T>
recurrent_request<T, true> write(location<T>& where, int rank = 0) noexcept {
  return {&where, rank};
}
template <class T>
recurrent_request<T, false> read(location<T>& where, int rank = 0) noexcept {
  return {&where, rank};
}

}  // namespace weft::inline WEFT_ABI::orwl
