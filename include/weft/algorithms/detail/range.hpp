// SPDX-License-Identifier: BSL-1.0
// What the algorithms take: ranges with random access, their parts, and projections.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::algorithms {

/// What the algorithms work on.
template <class R>
concept range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

/// *Returns*: the iterator i places behind `first`.
template <class I>
constexpr I at(I first, std::size_t i) {
  return first + static_cast<std::iter_difference_t<I>>(i);
}

/// Refuses iterators to bits of a std::vector<bool>, also reversed ones, where elements are written:
/// neighbours share a word.
template <class I>
constexpr void refuse_bits() {
  static_assert(
      !std::is_same_v<decltype(*std::declval<I&>()), std::vector<bool>::reference>,
      "weft: elements of a std::vector<bool> share words and cannot be written in parallel; take bytes");
}

/// A comparison of elements by what a projection makes of them.
template <class Compare, class Projection>
struct ordering {
  mutable Compare compare;
  mutable Projection projection;

  template <class A, class B>
  constexpr bool operator()(A&& a, B&& b) const {
    return static_cast<bool>(std::invoke(compare, std::invoke(projection, std::forward<A>(a)),
                                         std::invoke(projection, std::forward<B>(b))));
  }
};

/// Whether a comparison is that of operator < on the type itself.
template <class Compare, class T>
inline constexpr bool compares_by_less =
    std::is_same_v<Compare, std::ranges::less> || std::is_same_v<Compare, std::less<>> ||
    std::is_same_v<Compare, std::less<T>>;

/// Elements that are copied as fast as pointers.
template <class T>
inline constexpr bool small =
    std::is_trivially_copyable_v<T> && std::is_copy_assignable_v<T> && sizeof(T) <= 2 * sizeof(void*);

/// Whether an iterator points to such elements in memory: these are rearranged without branches, which would
/// be predicted wrongly half of the time.
template <class I>
inline constexpr bool to_small = std::contiguous_iterator<I> && small<std::iter_value_t<I>>;

/// Whether equal elements cannot be told apart.
template <class I, class Compare, class Projection>
inline constexpr bool equal_is_same =
    std::is_integral_v<std::iter_value_t<I>> && std::is_same_v<Projection, std::identity> &&
    compares_by_less<Compare, std::iter_value_t<I>>;

}  // namespace weft::inline WEFT_ABI::algorithms
