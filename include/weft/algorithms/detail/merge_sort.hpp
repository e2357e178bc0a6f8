// SPDX-License-Identifier: BSL-1.0
// Sorting that keeps equal elements in their order: parts are sorted as tasks, and merged by tasks.
#pragma once

#include <weft/algorithms/detail/merge.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace weft::inline WEFT_ABI::algorithms {

/// Memory beside n elements that are sorted, and the elements that were moved there.
///
/// Who may touch it when: each of `moved` belongs to the task that sorts this part.
template <class T>
class workspace {
 public:
  /// For a range that is sorted in so many parts. *Throws*: std::bad_alloc.
  workspace(std::size_t n, std::size_t parts)
      : moved(parts), n_(n), first_(std::allocator<T>().allocate(n)) {}
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  ~workspace() {
    for (const auto& p : moved) std::destroy(p.begin(), p.end());
    std::allocator<T>().deallocate(first_, n_);
  }
  T* data() const noexcept { return first_; }

  std::vector<std::ranges::subrange<T*>> moved;  ///< by part; empty: nothing was moved there

 private:
  std::size_t n_;
  T* first_;
};

/// Sorts small elements by merging short runs. The result is in `buffer`, or in place.
template <class T, class Less>
void sort_small(T* v, T* buffer, std::ptrdiff_t n, bool to_buffer, const Less& less) {
  constexpr std::ptrdiff_t run = 16;
  if (n <= run) {
    for (std::ptrdiff_t i = 1; i < n; ++i) {
      const T e = v[i];
      std::ptrdiff_t k = i;
      for (; k != 0 && less(e, v[k - 1]); --k) v[k] = v[k - 1];
      v[k] = e;
    }
    if (to_buffer) std::copy_n(v, n, buffer);
    return;
  }
  const std::ptrdiff_t middle = n / 2;
  sort_small(v, buffer, middle, !to_buffer, less);
  sort_small(v + middle, buffer + middle, n - middle, !to_buffer, less);
  merge_halves(to_buffer ? v : buffer, n, to_buffer ? buffer : v, less);
}

/// Sorts [first, first + n), whose elements have places from `beside` on.
template <class I, class Less>
struct merge_sort {
  using value = std::iter_value_t<I>;

  workspace<value>& memory;
  const Less& less;
  std::ptrdiff_t longest;  // serial merge

  void operator()(I first, value* beside, std::ptrdiff_t n, bool to_buffer, std::size_t parts,
                  std::size_t number) const {
    if (parts == 1) return sort_part_(first, beside, n, to_buffer, number);
    const std::ptrdiff_t middle = n / 2;
    run_both([&] { (*this)(first, beside, middle, !to_buffer, parts / 2, number); },
             [&] {
               (*this)(first + middle, beside + middle, n - middle, !to_buffer, parts / 2,
                       number + parts / 2);
             });
    if (to_buffer)
      merge_in_parts<true>(first, first + middle, first + middle, first + n, beside, less, longest);
    else
      merge_in_parts<true>(beside, beside + middle, beside + middle, beside + n, first, less, longest);
  }

 private:
  void sort_part_(I first, value* beside, std::ptrdiff_t n, bool to_buffer, std::size_t number) const {
    if constexpr (to_small<I>) {
      sort_small(std::to_address(first), beside, n, to_buffer, less);
    } else {
      std::ranges::stable_sort(first, first + n, std::ref(less));
      std::ranges::uninitialized_move(first, first + n, beside, beside + n);
      memory.moved[number] = {beside, beside + n};
      if (!to_buffer) std::ranges::move(beside, beside + n, first);
    }
  }
};

template <class I, class Less>
void stable_sort_serially(I first, I last, const Less& less) {
  if constexpr (to_small<I>) {
    const workspace<std::iter_value_t<I>> memory(static_cast<std::size_t>(last - first), 0);
    sort_small(std::to_address(first), memory.data(), last - first, false, less);
  } else {
    std::ranges::stable_sort(first, last, std::ref(less));
  }
}

template <class I, class Less>
void stable_sort_in_tasks(const char* name, I first, I last, const Less& less) {
  // So that the sorted parts, whose elements are moved in any case, are in the memory beside.
  const unsigned levels = halvings(4) | 1u;
  const std::size_t parts = std::size_t{1} << levels;
  workspace<std::iter_value_t<I>> memory(static_cast<std::size_t>(last - first), parts);
  const merge_sort<I, Less> sort{
      memory, less, std::max<std::ptrdiff_t>(2048, (last - first) / static_cast<std::ptrdiff_t>(parts))};
  run_and_wait(name, [&] { sort(first, memory.data(), last - first, false, parts, 0); });
}

}  // namespace weft::inline WEFT_ABI::algorithms
