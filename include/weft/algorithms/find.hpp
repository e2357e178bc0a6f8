// SPDX-License-Identifier: BSL-1.0
// find, find_if, any_of, all_of, none_of: the first element of some kind, without a look at all others.
#pragma once

#include <weft/algorithms/detail/pieces.hpp>
#include <weft/algorithms/detail/range.hpp>

#include <exception>
#include <optional>

namespace weft::inline WEFT_ABI {

namespace algorithms {

/// *Returns*: the index of the first element for which `is` holds, or n. *Throws*: what `is` throws, if no
/// element before is one.
template <class I, class Is>
std::size_t find_first(const char* name, I begin, std::size_t n, const Is& is) {
  const auto search = [&](std::size_t i, std::size_t last) {
    for (auto e = at(begin, i); i != last && !is(*e);) ++i, ++e;
    return i;
  };
  if (runs_serially()) return search(0, n);

  struct end_of_search {
    std::optional<std::size_t> found;
    std::exception_ptr thrown;
  };
  auto part = [&search](end_of_search& e, std::size_t first, std::size_t last) {
    try {
      if (const std::size_t i = search(first, last); i != last) e.found = i;
    } catch (...) {
      e.thrown = std::current_exception();  // does not matter if another piece has found an element before
    }
    return e.found || e.thrown;
  };
  pieces<end_of_search, decltype(part)> all(n, part);
  all.run(name);
  end_of_search first;
  all.for_each([&first](end_of_search& e) {
    if (!first.found && !first.thrown) first = std::move(e);
  });
  if (first.thrown) std::rethrow_exception(first.thrown);
  return first.found.value_or(n);
}

struct find_if_function {
  template <range R, class Predicate, class Projection = std::identity>
  std::ranges::borrowed_iterator_t<R> operator()(R&& r, Predicate predicate,
                                                 Projection projection = {}) const {
    return at(
        std::ranges::begin(r),
        find_first("weft::find_if", std::ranges::begin(r), std::size_t(std::ranges::size(r)), [&](auto&& e) {
          return static_cast<bool>(
              std::invoke(predicate, std::invoke(projection, std::forward<decltype(e)>(e))));
        }));
  }
};

struct find_function {
  template <range R, class T, class Projection = std::identity>
  std::ranges::borrowed_iterator_t<R> operator()(R&& r, const T& value, Projection projection = {}) const {
    return at(
        std::ranges::begin(r),
        find_first("weft::find", std::ranges::begin(r), std::size_t(std::ranges::size(r)),
                   [&](auto&& e) { return std::invoke(projection, std::forward<decltype(e)>(e)) == value; }));
  }
};

/// Whether there is an element for which the predicate is `Wanted`.
template <bool Wanted, bool If>
struct quantifier_function {
  template <range R, class Predicate, class Projection = std::identity>
  bool operator()(R&& r, Predicate predicate, Projection projection = {}) const {
    constexpr const char* name = If ? "weft::any_of" : Wanted ? "weft::none_of" : "weft::all_of";
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    const bool there =
        find_first(name, std::ranges::begin(r), n, [&](auto&& e) {
          return static_cast<bool>(
                     std::invoke(predicate, std::invoke(projection, std::forward<decltype(e)>(e)))) == Wanted;
        }) != n;
    return there == If;
  }
};

}  // namespace algorithms

/// `find_if(range, predicate, projection = {})`: the first element for which the predicate holds.
/// *Requires*: the predicate may be called for several elements at the same time.
/// *Returns*: its iterator, or the end. *Throws*: what the predicate throws, if the serial search would have
/// come so far. *Cost*: elements behind the first are looked at while the search before goes on.
inline constexpr algorithms::algorithm<algorithms::find_if_function> find_if{};
/// `find(range, value, projection = {})`: the first element equal to the value. As find_if.
inline constexpr algorithms::algorithm<algorithms::find_function> find{};

/// `any_of(range, predicate, projection = {})`: whether the predicate holds for an element. As find_if.
inline constexpr algorithms::algorithm<algorithms::quantifier_function<true, true>> any_of{};
/// `none_of(range, predicate, projection = {})`: whether it holds for no element. As find_if.
inline constexpr algorithms::algorithm<algorithms::quantifier_function<true, false>> none_of{};
/// `all_of(range, predicate, projection = {})`: whether it holds for all elements. As find_if.
inline constexpr algorithms::algorithm<algorithms::quantifier_function<false, false>> all_of{};

}  // namespace weft::inline WEFT_ABI
