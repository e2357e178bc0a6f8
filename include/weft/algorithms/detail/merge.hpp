// SPDX-License-Identifier: BSL-1.0
// Two sorted ranges into one, in parts of one length.
#pragma once

#include <weft/algorithms/detail/range.hpp>
#include <weft/algorithms/detail/team.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace weft::inline WEFT_ABI::algorithms {

/// Elements that are copied as fast as a pointer is compared.
template <class T>
inline constexpr bool small = std::is_trivially_copyable_v<T> && sizeof(T) <= 2 * sizeof(void*);

/// Moves, or copies, into an output.
template <bool Move, class I, class Out>
Out transfer(I first, I last, Out out) {
  if constexpr (Move)
    return std::ranges::move(first, last, out).out;
  else
    return std::ranges::copy(first, last, out).out;
}

/// Merges [a, a_end) and [b, b_end); `before(of_b, of_a)`: whether the former must come first. Equal ones of a
/// come first.
template <bool Move, class A, class B, class Out, class Before>
Out merge_serially(A a, A a_end, B b, B b_end, Out out, const Before& before) {
  if constexpr (std::is_same_v<A, B> && std::contiguous_iterator<A> && small<std::iter_value_t<A>>) {
    while (a != a_end && b != b_end) {
      const bool second = before(*b, *a);
      *out = *(second ? std::to_address(b) : std::to_address(a));  // chosen without a branch
      ++out;
      b += second;
      a += !second;
    }
  } else {
    while (a != a_end && b != b_end) {
      if (before(*b, *a)) {
        if constexpr (Move)
          *out = std::ranges::iter_move(b);
        else
          *out = *b;
        ++b;
      } else {
        if constexpr (Move)
          *out = std::ranges::iter_move(a);
        else
          *out = *a;
        ++a;
      }
      ++out;
    }
  }
  return transfer<Move>(b, b_end, transfer<Move>(a, a_end, out));
}

/// The same by tasks, and waits for them.
template <bool Move, class A, class B, class Out, class Before>
void merge_in_parts(A a, A a_end, B b, B b_end, Out out, const Before& before, std::ptrdiff_t longest) {
  const std::ptrdiff_t na = a_end - a, nb = b_end - b;
  if (na + nb <= longest) {
    merge_serially<Move>(a, a_end, b, b_end, out, before);
    return;
  }
  A a_middle = a + na / 2;
  B b_middle = b + nb / 2;
  if (na >= nb)  // those of b before the one of a
    b_middle = std::partition_point(b, b_end, [&](const auto& e) { return before(e, *a_middle); });
  else  // those of a not behind the one of b
    a_middle = std::partition_point(a, a_end, [&](const auto& e) { return !before(*b_middle, e); });
  const Out out_middle = at(out, static_cast<std::size_t>((a_middle - a) + (b_middle - b)));
  run_both([&] { merge_in_parts<Move>(a, a_middle, b, b_middle, out, before, longest); },
           [&] {
             merge_in_parts<Move>(a_middle, a_end, b_middle, b_end, out_middle, before, longest);
           });
}

}  // namespace weft::inline WEFT_ABI::algorithms
