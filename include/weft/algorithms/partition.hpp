// SPDX-License-Identifier: BSL-1.0
// partition, stable_partition, nth_element: elements of one kind before those of another.
#pragma once

#include <weft/algorithms/detail/split.hpp>

#include <bit>

namespace weft::inline WEFT_ABI {

namespace algorithms {

template <bool Stable>
struct partition_function {
  template <range R, class Predicate, class Projection = std::identity>
  std::ranges::borrowed_iterator_t<R> operator()(R&& r, Predicate predicate,
                                                 Projection projection = {}) const {
    using iterator = std::ranges::iterator_t<R>;
    refuse_bits<iterator>();
    const iterator first = std::ranges::begin(r), last = first + std::ranges::distance(r);
    const auto is = [&](auto&& e) {
      return static_cast<bool>(std::invoke(predicate, std::invoke(projection, std::forward<decltype(e)>(e))));
    };
    if (runs_serially()) return in_parts_(first, last, is, 0);
    iterator middle = last;
    run_and_wait(Stable ? "weft::stable_partition" : "weft::partition",
                 [&] { middle = in_parts_(first, last, is, halvings(4)); });
    return middle;
  }

 private:
  template <class I, class Is>
  static I in_parts_(I first, I last, const Is& is, unsigned parts) {
    if constexpr (Stable)
      return split_stably(first, last, is, parts);
    else
      return split_in_parts(first, last, [&is](I from, I to) { return split(from, to, is); }, parts);
  }
};

struct nth_element_function {
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  void operator()(R&& r, std::ranges::iterator_t<R> nth, Compare compare = {},
                  Projection projection = {}) const {
    using iterator = std::ranges::iterator_t<R>;
    refuse_bits<iterator>();
    iterator first = std::ranges::begin(r), last = first + std::ranges::distance(r);
    const ordering<std::reference_wrapper<Compare>, std::reference_wrapper<Projection>> less{compare,
                                                                                             projection};
    if (nth == last) return;
    if (!runs_serially())
      run_and_wait("weft::nth_element", [&] {
        unsigned rounds = 2 * static_cast<unsigned>(std::bit_width(static_cast<std::size_t>(last - first)));
        for (; last - first > 8 * least_part && rounds != 0; --rounds) {
          const three_parts<iterator> parts = split_at_pivot(first, last, less, halvings(2));
          if (nth < parts.equal)
            last = parts.equal;
          else if (nth < parts.greater)
            last = first;  // it is at its place
          else
            first = parts.greater;
        }
      });
    if (first != last) std::ranges::nth_element(first, nth, last, std::ref(less));
  }
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  void operator()(runtime& rt, R&& r, std::ranges::iterator_t<R> nth, Compare compare = {},
                  Projection projection = {}) const {
    rt.run([&] { (*this)(r, nth, std::move(compare), std::move(projection)); });
  }
};

}  // namespace algorithms

/// `partition(range, predicate, projection = {})`: moves the elements for which the predicate holds to the
/// front; the order is unspecified, as it is of std::partition.
/// *Requires*: the predicate may be called for several elements at the same time; elements can be swapped.
/// *Returns*: where the others begin. *Throws*: what the predicate throws; then no element is lost.
inline constexpr algorithms::algorithm<algorithms::partition_function<false>> partition{};
/// `stable_partition(range, predicate, projection = {})`: the same, and the order within both groups stays.
/// *Requires*: elements can be moved. *Throws*: what the predicate throws, then no element is lost;
/// std::bad_alloc. *Cost*: memory for as many elements.
inline constexpr algorithms::algorithm<algorithms::partition_function<true>> stable_partition{};
/// `nth_element(range, nth, compare = {}, projection = {})`: places at the iterator `nth` the element that
/// would be there if the range was sorted, those that are not greater before it, and the others behind it.
/// *Throws*: as sort.
inline constexpr algorithms::algorithm<algorithms::nth_element_function> nth_element{};

}  // namespace weft::inline WEFT_ABI
