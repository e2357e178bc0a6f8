// SPDX-License-Identifier: BSL-1.0
// Two sorted ranges into one, in parts of one length.
#pragma once

#include <weft/algorithms/detail/range.hpp>
#include <weft/algorithms/detail/team.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::inline WEFT_ABI::algorithms {

/// *Returns*: `b` if `second`, else `a`; without a branch, which compilers make of a conditional expression.
template <class T>
WEFT_ALWAYS_INLINE const T* choose(const T* a, const T* b, bool second) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(a), to = reinterpret_cast<std::uintptr_t>(b);
  return reinterpret_cast<const T*>(from + ((to - from) & -static_cast<std::uintptr_t>(second)));
}

/// Merges the two sorted halves of n small elements, from both ends at the same time.
template <class T, class Before>
void merge_halves(const T* from, std::ptrdiff_t n, T* out, const Before& before) {
  const std::ptrdiff_t half = n / 2;
  const T *a = from, *b = from + half, *a_last = b - 1, *b_last = from + n - 1;
  T* out_last = out + n - 1;
  for (std::ptrdiff_t i = 0; i != half; ++i) {  // neither half is exhausted before the last step
    const bool second = before(*b, *a);
    *out++ = *choose(a, b, second);
    b += second;
    a += !second;
    const bool first = before(*b_last, *a_last);
    *out_last-- = *choose(b_last, a_last, first);
    a_last -= first;
    b_last -= !first;
  }
  if (n % 2 != 0) *out = *(a <= a_last ? a : b);
}

/// Moves, or copies, into an output.
template <bool Move, class I, class Out>
Out transfer(I first, I last, Out out) {
  if constexpr (Move)
    return std::ranges::move(first, last, out).out;
  else
    return std::ranges::copy(first, last, out).out;
}

/// Merges [a, a_end) and [b, b_end); `before(of_b, of_a)`: whether the former must come first. Equal ones of
/// a come first.
template <bool Move, class A, class B, class Out, class Before>
Out merge_serially(A a, A a_end, B b, B b_end, Out out, const Before& before) {
  if constexpr (to_small<A> && to_small<B> && std::is_same_v<std::iter_value_t<A>, std::iter_value_t<B>>) {
    while (a != a_end && b != b_end) {
      const bool second = before(*b, *a);
      *out = *choose(std::to_address(a), std::to_address(b), second);
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
    b_middle = std::ranges::partition_point(b, b_end, [&](const auto& e) { return before(e, *a_middle); });
  else  // those of a not behind the one of b
    a_middle = std::ranges::partition_point(a, a_end, [&](const auto& e) { return !before(*b_middle, e); });
  const Out out_middle = at(out, static_cast<std::size_t>((a_middle - a) + (b_middle - b)));
  run_both([&] { merge_in_parts<Move>(a, a_middle, b, b_middle, out, before, longest); },
           [&] { merge_in_parts<Move>(a_middle, a_end, b_middle, b_end, out_middle, before, longest); });
}

}  // namespace weft::inline WEFT_ABI::algorithms
