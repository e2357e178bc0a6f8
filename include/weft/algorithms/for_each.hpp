// SPDX-License-Identifier: BSL-1.0
// for_each, transform, fill: something is done with each element.
#pragma once

#include <weft/algorithms/detail/pieces.hpp>
#include <weft/algorithms/detail/range.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI {

namespace algorithms {

struct for_each_function {
  template <range R, class F, class Projection = std::identity>
  void operator()(R&& r, F f, Projection projection = {}) const {
    const auto first = std::ranges::begin(r);
    const auto each = [&](std::size_t i, std::size_t last) {
      for (auto e = at(first, i); i != last; ++i, ++e) std::invoke(f, std::invoke(projection, *e));
    };
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    if (runs_serially()) return each(0, n);
    for_pieces("weft::for_each", n, each);
  }
};

struct transform_function {
  template <range R, std::random_access_iterator Out, class F, class Projection = std::identity>
    requires(!range<Out>)
  Out operator()(R&& r, Out out, F f, Projection projection = {}) const {
    const auto first = std::ranges::begin(r);
    const auto each = [&](std::size_t i, std::size_t last) {
      auto to = at(out, i);
      for (auto e = at(first, i); i != last; ++i, ++e, ++to)
        *to = std::invoke(f, std::invoke(projection, *e));
    };
    return all_(each, static_cast<std::size_t>(std::ranges::size(r)), out);
  }
  template <range R1, range R2, std::random_access_iterator Out, class F, class Projection1 = std::identity,
            class Projection2 = std::identity>
  Out operator()(R1&& r1, R2&& r2, Out out, F f, Projection1 projection1 = {},
                 Projection2 projection2 = {}) const {
    const auto first1 = std::ranges::begin(r1);
    const auto first2 = std::ranges::begin(r2);
    const auto each = [&](std::size_t i, std::size_t last) {
      auto to = at(out, i);
      auto e2 = at(first2, i);
      for (auto e1 = at(first1, i); i != last; ++i, ++e1, ++e2, ++to)
        *to = std::invoke(f, std::invoke(projection1, *e1), std::invoke(projection2, *e2));
    };
    return all_(each,
                std::min(static_cast<std::size_t>(std::ranges::size(r1)),
                         static_cast<std::size_t>(std::ranges::size(r2))),
                out);
  }
  template <range R, std::random_access_iterator Out, class F, class Projection = std::identity>
    requires(!range<Out>)
  Out operator()(runtime& rt, R&& r, Out out, F f, Projection projection = {}) const {
    return rt.run([&] { return (*this)(r, out, std::move(f), std::move(projection)); });
  }
  template <range R1, range R2, std::random_access_iterator Out, class F, class Projection1 = std::identity,
            class Projection2 = std::identity>
  Out operator()(runtime& rt, R1&& r1, R2&& r2, Out out, F f, Projection1 projection1 = {},
                 Projection2 projection2 = {}) const {
    return rt.run(
        [&] { return (*this)(r1, r2, out, std::move(f), std::move(projection1), std::move(projection2)); });
  }

 private:
  template <class Each, class Out>
  static Out all_(const Each& each, std::size_t n, Out out) {
    refuse_bits<Out>();
    if (runs_serially())
      each(0, n);
    else
      for_pieces("weft::transform", n, each);
    return at(out, n);
  }
};

struct fill_function {
  template <range R, class T>
  void operator()(R&& r, const T& value) const {
    refuse_bits<std::ranges::iterator_t<R>>();
    const auto first = std::ranges::begin(r);
    const auto n = static_cast<std::size_t>(std::ranges::size(r));
    const auto each = [&](std::size_t i, std::size_t last) {
      std::ranges::fill(at(first, i), at(first, last), value);
    };
    if (runs_serially()) return each(0, n);
    for_pieces("weft::fill", n, each);
  }
};

}  // namespace algorithms

/// `for_each(range, f, projection = {})`: calls f with each element, as projected.
/// *Requires*: f may be called for several elements at the same time. *Throws*: what f throws for the first
/// element in the order of the range; later ones may have been processed.
/// *Example*: `weft::for_each(rt, words, [](std::string& s) { s += '.'; });`
inline constexpr algorithms::algorithm<algorithms::for_each_function> for_each{};

/// `transform(range, out, f, projection = {})` and `transform(range1, range2, out, f, projection1 = {},
/// projection2 = {})`: writes what f returns for each element, or each pair as far as both ranges go.
/// *Requires*: as for_each; `out` has random access, and may be the beginning of the range.
/// *Returns*: the iterator behind what was written.
inline constexpr algorithms::algorithm<algorithms::transform_function> transform{};

/// `fill(range, value)`: assigns the value to each element.
inline constexpr algorithms::algorithm<algorithms::fill_function> fill{};

}  // namespace weft::inline WEFT_ABI
