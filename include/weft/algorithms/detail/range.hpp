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

namespace weft::inline WEFT_ABI::algorithms {

/// What the algorithms work on.
template <class R>
concept range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

/// *Returns*: the iterator i places behind `first`.
template <class I>
constexpr I at(I first, std::size_t i) {
  return first + static_cast<std::iter_difference_t<I>>(i);
}

/// Iterators of the same range, as a range.
template <class I>
using part = std::ranges::subrange<I, I>;

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

/// Whether elements are numbers in memory, compared by operator <: then no branch is needed to sort them.
template <class I, class Compare, class Projection>
inline constexpr bool plain_numbers =
    std::contiguous_iterator<I> && std::is_arithmetic_v<std::iter_value_t<I>> &&
    std::is_same_v<Projection, std::identity> && compares_by_less<Compare, std::iter_value_t<I>>;

}  // namespace weft::inline WEFT_ABI::algorithms
