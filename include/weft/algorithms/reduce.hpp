// SPDX-License-Identifier: BSL-1.0
// reduce_range, transform_reduce, count_if, min_element, max_element: one value of all elements.
#pragma once

#include <weft/algorithms/detail/pieces.hpp>
#include <weft/algorithms/detail/range.hpp>

#include <algorithm>
#include <optional>

namespace weft::inline WEFT_ABI {

namespace algorithms {

/// Combines `sum` and what f makes of [first, last), in this order. Values that are copied easily are
/// combined by eights, so that not each operation waits for the one before; f is called in order, unlike by
/// std.
template <class T, class I, class Operation, class F>
T fold(T sum, I first, I last, Operation& op, F& f) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    // As values of T from the beginning: what f returns may be too narrow for a sum.
    const auto four = [&](I from) {
      const T a(std::invoke(f, from[0]));
      const T b(std::invoke(f, from[1]));
      const T c(std::invoke(f, from[2]));
      const T d(std::invoke(f, from[3]));
      const T ab(std::invoke(op, a, b)), cd(std::invoke(op, c, d));
      return T(std::invoke(op, ab, cd));
    };
    for (; last - first >= 8; first += 8) {
      const T front = four(first), back = four(first + 4);
      sum = std::invoke(op, sum, std::invoke(op, front, back));
    }
  }
  for (; first != last; ++first) sum = std::invoke(op, std::move(sum), std::invoke(f, *first));
  return sum;
}

struct transform_reduce_function {
  template <range R, class T, class Operation, class F>
  T operator()(R&& r, T init, Operation op, F f) const {
    const auto begin = std::ranges::begin(r);
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    if (runs_serially()) return fold(std::move(init), begin, at(begin, n), op, f);

    auto part = [&](std::optional<T>& sum, std::size_t first, std::size_t last) {
      if (!sum) {
        sum.emplace(std::invoke(f, *at(begin, first)));
        ++first;
      }
      *sum = fold(std::move(*sum), at(begin, first), at(begin, last), op, f);
      return false;
    };
    pieces<std::optional<T>, decltype(part)> all(n, part);
    all.run("weft::transform_reduce");
    all.for_each([&](std::optional<T>& sum) {
      if (sum) init = std::invoke(op, std::move(init), std::move(*sum));
    });
    return init;
  }
};

struct reduce_function {
  template <range R, class T = std::ranges::range_value_t<R>, class Operation = std::plus<>,
            class Projection = std::identity>
  T operator()(R&& r, T init = T(), Operation op = {}, Projection projection = {}) const {
    return transform_reduce_function()(r, std::move(init), std::move(op), std::move(projection));
  }
  template <range R, class T = std::ranges::range_value_t<R>, class Operation = std::plus<>,
            class Projection = std::identity>
  T operator()(runtime& rt, R&& r, T init = T(), Operation op = {}, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, std::move(init), std::move(op), std::move(projection)); });
  }
};

struct count_if_function {
  template <range R, class Predicate, class Projection = std::identity>
  std::ranges::range_difference_t<R> operator()(R&& r, Predicate predicate,
                                                Projection projection = {}) const {
    const auto begin = std::ranges::begin(r);
    const auto count = [&](std::size_t first, std::size_t last) {
      return std::ranges::count_if(at(begin, first), at(begin, last), std::ref(predicate),
                                   std::ref(projection));
    };
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    if (runs_serially()) return count(0, n);
    using number = std::ranges::range_difference_t<R>;
    auto part = [&](number& sum, std::size_t first, std::size_t last) {
      sum += count(first, last);
      return false;
    };
    pieces<number, decltype(part)> all(n, part);
    all.run("weft::count_if");
    number sum = 0;
    all.for_each([&sum](number of_piece) { sum += of_piece; });
    return sum;
  }
};

/// The first element that no other one is before. `Last`: of those that are before no other one.
template <bool Last>
struct extreme_function {
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  std::ranges::borrowed_iterator_t<R> operator()(R&& r, Compare compare = {},
                                                 Projection projection = {}) const {
    const auto begin = std::ranges::begin(r);
    const auto extreme = [&](std::size_t first, std::size_t last) {
      if constexpr (Last)
        return std::ranges::max_element(at(begin, first), at(begin, last), std::ref(compare),
                                        std::ref(projection));
      else
        return std::ranges::min_element(at(begin, first), at(begin, last), std::ref(compare),
                                        std::ref(projection));
    };
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    if (runs_serially()) return extreme(0, n);

    using best = std::optional<std::remove_cvref_t<decltype(begin)>>;
    const ordering<std::reference_wrapper<Compare>, std::reference_wrapper<Projection>> before{compare,
                                                                                               projection};
    const auto take = [&before](best& found, const best& other) {
      if (!found || (Last ? before(**found, **other) : before(**other, **found))) found = other;
    };
    auto part = [&](best& found, std::size_t first, std::size_t last) {
      take(found, extreme(first, last));
      return false;
    };
    pieces<best, decltype(part)> all(n, part);
    all.run(Last ? "weft::max_element" : "weft::min_element");
    best found;
    all.for_each([&](const best& of_piece) {
      if (of_piece) take(found, of_piece);
    });
    return found.value_or(at(begin, n));
  }
  template <range R, class Compare = std::ranges::less, class Projection = std::identity>
  std::ranges::borrowed_iterator_t<R> operator()(runtime& rt, R&& r, Compare compare = {},
                                                 Projection projection = {}) const {
    return rt.run([&] { return (*this)(std::forward<R>(r), std::move(compare), std::move(projection)); });
  }
};

}  // namespace algorithms

/// `transform_reduce(range, init, operation, f)`: combines `init` and what f returns for each element, in the
/// order of the range.
/// *Requires*: the operation is associative, and takes two of: T (the type of `init`), what f returns; it
/// need not be commutative. T can be made of what f returns. Both may be called several times at once.
/// *Returns*: what the serial loop computes (to the last bit if the operation is associative to the last bit,
/// as addition of floating-point numbers is not). *Throws*: what f throws first in the order of the range; an
/// operation that throws may do so earlier or later than in the serial loop, since others are combined.
inline constexpr algorithms::algorithm<algorithms::transform_reduce_function> transform_reduce{};
/// `reduce_range(range, init = {}, operation = std::plus<>(), projection = {})`: combines all elements in
/// their order. As transform_reduce. (weft::reduce is a right on a shared object.)
inline constexpr algorithms::algorithm<algorithms::reduce_function> reduce_range{};
/// `count_if(range, predicate, projection = {})`: for how many elements the predicate holds.
inline constexpr algorithms::algorithm<algorithms::count_if_function> count_if{};
/// `min_element(range, compare = {}, projection = {})`: the first of the least elements, or the end.
inline constexpr algorithms::algorithm<algorithms::extreme_function<false>> min_element{};
/// `max_element(range, compare = {}, projection = {})`: the first of the greatest elements, or the end.
inline constexpr algorithms::algorithm<algorithms::extreme_function<true>> max_element{};

}  // namespace weft::inline WEFT_ABI
