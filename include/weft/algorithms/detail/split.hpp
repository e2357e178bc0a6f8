// SPDX-License-Identifier: BSL-1.0
// Partitions in halves that are worked on at the same time; in place.
#pragma once

#include <weft/algorithms/detail/range.hpp>
#include <weft/algorithms/detail/team.hpp>
#include <weft/algorithms/detail/workspace.hpp>

#include <algorithm>
#include <memory>

namespace weft::inline WEFT_ABI::algorithms {

/// Shorter ranges are not divided between workers.
inline constexpr std::ptrdiff_t least_part = 2048;

/// Moves those for which `is` holds to the front, whatever their order. *Returns*: where the others begin.
template <class I, class Is>
I split(I first, I last, const Is& is) {
  return std::ranges::partition(first, last, std::ref(is)).begin();
}
/// The same of small elements, without a branch.
template <class T, class Is>
T* split_small(T* first, T* last, const Is& is) {
  T* others = first;
  for (; first != last; ++first) {
    const T e = *first;
    *first = *others;
    *others = e;
    others += is(e) ? 1 : 0;
  }
  return others;
}

/// Exchanges [a, middle) and [middle, b) but for their order: as few elements as possible move.
/// *Returns*: where those that were behind `middle` end.
template <class I>
I exchange(I a, I middle, I b) {
  const auto n = std::min(middle - a, b - middle);
  const auto swap = [=](std::ptrdiff_t i, std::ptrdiff_t j) {
    std::ranges::swap_ranges(a + i, a + j, b - n + i, b - n + j);
  };
  if (n < least_part)
    swap(0, n);
  else
    run_both([&] { swap(0, n / 2); }, [&] { swap(n / 2, n); });
  return a + (b - middle);
}

/// split() in 2 to the power of `halvings` parts. `part(first, last)` does it for one.
template <class I, class Part>
I split_in_parts(I first, I last, const Part& part, unsigned halvings) {
  if (halvings == 0 || last - first < 2 * least_part) return part(first, last);
  const I middle = first + (last - first) / 2;
  I a = middle, b = last;
  run_both([&] { a = split_in_parts(first, middle, part, halvings - 1); },
           [&] { b = split_in_parts(middle, last, part, halvings - 1); });
  return exchange(a, middle, b);
}

/// split() that keeps the order. If `is` throws, no element is lost.
template <class I, class Is>
I split_beside(I first, I last, const Is& is) {
  workspace<std::iter_value_t<I>> memory(static_cast<std::size_t>(last - first), 1);
  auto& others = memory.moved[0];
  others = {memory.data(), memory.data()};
  I front = first;
  try {
    for (; first != last; ++first) {
      if (!is(*first)) {
        std::construct_at(others.end(), std::ranges::iter_move(first));
        others = {others.begin(), others.end() + 1};
      } else {
        if (front != first) *front = std::ranges::iter_move(first);
        ++front;
      }
    }
  } catch (...) {
    std::ranges::move(others, front);
    throw;
  }
  std::ranges::move(others, front);
  return front;
}

/// split_in_parts() that keeps the order.
template <class I, class Is>
I split_stably(I first, I last, const Is& is, unsigned halvings) {
  if (halvings == 0 || last - first < 2 * least_part) return split_beside(first, last, is);
  const I middle = first + (last - first) / 2;
  I a = middle, b = last;
  run_both([&] { a = split_stably(first, middle, is, halvings - 1); },
           [&] { b = split_stably(middle, last, is, halvings - 1); });
  return std::ranges::rotate(a, middle, b).begin();
}

/// Of nine elements across the range, the middle one.
template <class I, class Less>
I choose_pivot(I first, I last, const Less& less) {
  const auto middle = [&less](I a, I b, I c) {
    if (less(*b, *a)) std::swap(a, b);
    if (less(*c, *b)) b = less(*c, *a) ? a : c;
    return b;
  };
  const auto step = (last - first) / 8;
  const auto three = [&](I i) { return middle(i, i + step, i + 2 * step); };
  return middle(three(first), three(first + 3 * step), middle(first + 6 * step, first + 7 * step, last - 1));
}

/// The elements less than a pivot, the pivot's equals that have been found, and the others.
template <class I>
struct three_parts {
  I equal, greater;
};

/// Rearranges the range so. *Requires*: at least 16 elements.
template <class I, class Less>
three_parts<I> split_at_pivot(I first, I last, const Less& less, unsigned halvings) {
  std::ranges::iter_swap(first, choose_pivot(first, last, less));
  const auto split_by = [halvings](I from, I to, const auto& is) {
    const auto part = [&is](I f, I l) {
      if constexpr (to_small<I>)
        return f + (split_small(std::to_address(f), std::to_address(l), is) - std::to_address(f));
      else
        return split(f, l, is);
    };
    return split_in_parts(from, to, part, halvings);
  };
  // Best compared in registers, not in memory that might change; but only if it can be copied.
  struct {
    std::conditional_t<to_small<I>, const std::iter_value_t<I>, const std::iter_value_t<I>&> value;
  } pivot{*first};
  const I equal =
      split_by(first + 1, last, [&less, pivot](const auto& e) { return less(e, pivot.value); }) - 1;
  std::ranges::iter_swap(first, equal);
  // Few are less: many may be equal, and of these there is nothing more to sort.
  if (equal - first >= (last - first) / 16) return {equal, equal + 1};
  decltype(pivot) again{*equal};
  return {equal, split_by(equal + 1, last, [&less, again](const auto& e) { return !less(again.value, e); })};
}

}  // namespace weft::inline WEFT_ABI::algorithms
