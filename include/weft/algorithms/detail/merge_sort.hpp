// SPDX-License-Identifier: BSL-1.0
// Sorting that keeps equal elements in their order: parts are sorted as tasks, and merged by tasks.
#pragma once

#include <weft/algorithms/detail/merge.hpp>
#include <weft/algorithms/detail/workspace.hpp>

#include <algorithm>
#include <memory>

namespace weft::inline WEFT_ABI::algorithms {

/// Sorts the n elements from v on by merging short runs. The result is from `other` on, or in place.
/// *Requires*: there are elements from `other` on, whatever their values, or memory for small ones.
template <class A, class B, class Less>
void sort_by_merging(A v, B other, std::ptrdiff_t n, bool to_other, const Less& less) {
  constexpr std::ptrdiff_t run = to_small<A> ? 16 : 8;
  if (n <= run) {
    for (std::ptrdiff_t i = 1; i < n; ++i) {
      std::iter_value_t<A> e = std::ranges::iter_move(v + i);
      std::ptrdiff_t k = i;
      for (; k != 0 && less(e, v[k - 1]); --k) v[k] = std::ranges::iter_move(v + (k - 1));
      v[k] = std::move(e);
    }
    if (to_other) std::ranges::move(v, v + n, other);
    return;
  }
  const std::ptrdiff_t middle = n / 2;
  sort_by_merging(v, other, middle, !to_other, less);
  sort_by_merging(v + middle, other + middle, n - middle, !to_other, less);
  const auto merge = [&](auto from, auto to) {
    if constexpr (to_small<A> && to_small<B>)
      merge_halves(std::to_address(from), n, std::to_address(to), less);
    else
      merge_serially<true>(from, from + middle, from + middle, from + n, to, less);
  };
  if (to_other)
    merge(v, other);
  else
    merge(other, v);
}

/// Sorts [first, first + n), which has memory from `beside` on. The result is there if `to_beside`. Elements
/// that were moved there are `moved`.
template <class I, class T, class Less>
void sort_beside(I first, T* beside, std::ptrdiff_t n, bool to_beside, std::ranges::subrange<T*>& moved,
                 const Less& less) {
  if constexpr (to_small<I>) {
    sort_by_merging(std::to_address(first), beside, n, to_beside, less);
  } else {
    std::ranges::uninitialized_move(first, first + n, beside, beside + n);
    moved = {beside, beside + n};
    sort_by_merging(beside, first, n, !to_beside, less);
  }
}

/// Sorts [first, first + n), whose elements have places from `beside` on.
template <class I, class Less>
struct merge_sort {
  using value = std::iter_value_t<I>;

  workspace<value>& memory;
  const Less& less;
  std::ptrdiff_t longest;  // serial merge

  void operator()(I first, value* beside, std::ptrdiff_t n, bool to_beside, std::size_t parts,
                  std::size_t number) const {
    if (parts == 1) return sort_beside(first, beside, n, to_beside, memory.moved[number], less);
    const std::ptrdiff_t middle = n / 2;
    run_both([&] { (*this)(first, beside, middle, !to_beside, parts / 2, number); },
             [&] {
               (*this)(first + middle, beside + middle, n - middle, !to_beside, parts / 2,
                       number + parts / 2);
             });
    if (to_beside)
      merge_in_parts<true>(first, first + middle, first + middle, first + n, beside, less, longest);
    else
      merge_in_parts<true>(beside, beside + middle, beside + middle, beside + n, first, less, longest);
  }
};

template <class I, class Less>
void stable_sort_serially(I first, I last, const Less& less) {
  workspace<std::iter_value_t<I>> memory(static_cast<std::size_t>(last - first), 1);
  sort_beside(first, memory.data(), last - first, false, memory.moved[0], less);
}

template <class I, class Less>
void stable_sort_in_tasks(const char* name, I first, I last, const Less& less) {
  const std::size_t parts = std::size_t{1} << halvings(4);
  workspace<std::iter_value_t<I>> memory(static_cast<std::size_t>(last - first), parts);
  const merge_sort<I, Less> sort{
      memory, less, std::max<std::ptrdiff_t>(2048, (last - first) / static_cast<std::ptrdiff_t>(parts))};
  run_and_wait(name, [&] { sort(first, memory.data(), last - first, false, parts, 0); });
}

}  // namespace weft::inline WEFT_ABI::algorithms
