// SPDX-License-Identifier: BSL-1.0
// sort, stable_sort: the elements of a range in order.
#pragma once

#include <weft/algorithms/detail/merge_sort.hpp>
#include <weft/algorithms/detail/quicksort.hpp>

namespace weft::inline WEFT_ABI {

namespace algorithms {

template <bool Stable>
struct sort_function {
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  void operator()(R&& r, Compare compare = {}, Projection projection = {}) const {
    using iterator = std::ranges::iterator_t<R>;
    refuse_bits<iterator>();
    const iterator first = std::ranges::begin(r), last = first + std::ranges::distance(r);
    const ordering<std::reference_wrapper<Compare>, std::reference_wrapper<Projection>> less{compare,
                                                                                             projection};
    const bool serial = runs_serially(last - first < 4 * least_part);
    if constexpr (!Stable || equal_is_same<iterator, Compare, Projection>) {
      if (serial) return sort_serially(first, last, less);
      sort_in_tasks(Stable ? "weft::stable_sort" : "weft::sort", first, last, less);
    } else {
      if (serial) return stable_sort_serially(first, last, less);
      stable_sort_in_tasks("weft::stable_sort", first, last, less);
    }
  }
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  void operator()(runtime& rt, R&& r, Compare compare = {}, Projection projection = {}) const {
    rt.run([&] { (*this)(r, std::move(compare), std::move(projection)); });
  }
};

}  // namespace algorithms

/// `sort(range, compare = {}, projection = {})`: sorts the elements; the order of equal ones is unspecified,
/// as it is of std::sort, and may differ from run to run.
/// *Requires*: the comparison may be called several times at once; elements can be moved and swapped.
/// *Throws*: what the comparison throws, and elements are then where they happen to be, some moved from.
/// *Cost*: in place; n log n comparisons, also in the worst case.
inline constexpr algorithms::algorithm<algorithms::sort_function<false>> sort{};
/// `stable_sort(range, compare = {}, projection = {})`: the same, and equal elements stay in their order.
/// *Throws*: as sort; std::bad_alloc. *Cost*: memory for as many elements (none for integers in their own
/// order); n log n comparisons.
inline constexpr algorithms::algorithm<algorithms::sort_function<true>> stable_sort{};

}  // namespace weft::inline WEFT_ABI
