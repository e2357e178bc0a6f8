// SPDX-License-Identifier: BSL-1.0
// merge: two sorted ranges into one.
#pragma once

#include <weft/algorithms/detail/merge.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI {

namespace algorithms {

struct merge_function {
  template <range R1, range R2, std::random_access_iterator Out, class Compare = std::ranges::less,
            class Projection1 = std::identity, class Projection2 = std::identity>
  Out operator()(R1&& r1, R2&& r2, Out out, Compare compare = {}, Projection1 projection1 = {},
                 Projection2 projection2 = {}) const {
    const auto a = std::ranges::begin(r1);
    const auto b = std::ranges::begin(r2);
    const std::ptrdiff_t na = std::ranges::distance(r1), nb = std::ranges::distance(r2);
    const auto before = [&](const auto& of_b, const auto& of_a) {
      return static_cast<bool>(
          std::invoke(compare, std::invoke(projection2, of_b), std::invoke(projection1, of_a)));
    };
    refuse_bits<Out>();
    if (runs_serially()) return merge_serially<false>(a, a + na, b, b + nb, out, before);
    const std::ptrdiff_t longest = std::max<std::ptrdiff_t>(2048, (na + nb) / (8 * workers()));
    run_and_wait("weft::merge", [&] { merge_in_parts<false>(a, a + na, b, b + nb, out, before, longest); });
    return at(out, static_cast<std::size_t>(na + nb));
  }
  template <range R1, range R2, std::random_access_iterator Out, class Compare = std::ranges::less,
            class Projection1 = std::identity, class Projection2 = std::identity>
  Out operator()(runtime& rt, R1&& r1, R2&& r2, Out out, Compare compare = {}, Projection1 projection1 = {},
                 Projection2 projection2 = {}) const {
    return rt.run([&] {
      return (*this)(r1, r2, out, std::move(compare), std::move(projection1), std::move(projection2));
    });
  }
};

}  // namespace algorithms

/// `merge(range1, range2, out, compare = {}, projection1 = {}, projection2 = {})`: copies the elements of two
/// sorted ranges so that all are sorted; of equal ones those of the first range come first.
/// *Requires*: the comparison may be called several times at once; `out` has random access, and is outside
/// both ranges. *Returns*: the iterator behind what was written. *Throws*: what the comparison throws.
inline constexpr algorithms::algorithm<algorithms::merge_function> merge{};

}  // namespace weft::inline WEFT_ABI
