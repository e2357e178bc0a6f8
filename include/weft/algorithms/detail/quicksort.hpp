// SPDX-License-Identifier: BSL-1.0
// Sorting in place: ranges are split at a pivot, and both sides become tasks.
#pragma once

#include <weft/algorithms/detail/split.hpp>

#include <boost/sort/pdqsort/pdqsort.hpp>

#include <bit>

namespace weft::inline WEFT_ABI::algorithms {

/// One worker's way to sort.
template <class I, class Less>
void sort_serially(I first, I last, const Less& less) {
  if constexpr (to_small<I>)
    boost::sort::pdqsort_branchless(std::to_address(first), std::to_address(last), std::ref(less));
  else
    std::ranges::sort(first, last, std::ref(less));
}

/// Sorts [first, last), the whole of which has `total` elements; after `rounds` bad pivots serially.
template <class I, class Less>
struct quicksort {
  std::ptrdiff_t total;
  unsigned workers;
  const Less& less;

  void operator()(I first, I last, unsigned rounds) const {
    const std::ptrdiff_t n = last - first;
    if (n <= 2 * least_part || rounds == 0) return sort_serially(first, last, less);
    // While there are fewer sides than workers, they help to split.
    const unsigned helping = n > total / workers ? halvings(1) : 0;
    const three_parts<I> parts = split_at_pivot(first, last, less, helping);
    fork([this, first, end = parts.equal, rounds] { (*this)(first, end, rounds - 1); });
    fork([this, begin = parts.greater, last, rounds] { (*this)(begin, last, rounds - 1); });
  }
};

template <class I, class Less>
void sort_in_tasks(const char* name, I first, I last, const Less& less) {
  const quicksort<I, Less> sort{last - first, workers(), less};
  const unsigned rounds = 2 * static_cast<unsigned>(std::bit_width(static_cast<std::size_t>(last - first)));
  run_and_wait(name, [&] { sort(first, last, rounds); });
}

}  // namespace weft::inline WEFT_ABI::algorithms
