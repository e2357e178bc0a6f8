// SPDX-License-Identifier: BSL-1.0
// divide_and_conquer: a problem that is divided into smaller ones, whose results are combined.
#pragma once

#include <weft/algorithms/detail/team.hpp>

#include <functional>
#include <optional>
#include <ranges>
#include <vector>

namespace weft::inline WEFT_ABI {

namespace algorithms {

template <class Small, class Solve, class Divide, class Combine>
struct conquest {
  Small& small;
  Solve& solve;
  Divide& divide;
  Combine& combine;

  template <class P>
  auto operator()(P& problem) const -> std::remove_cvref_t<std::invoke_result_t<Solve&, P&>> {
    using result = std::remove_cvref_t<std::invoke_result_t<Solve&, P&>>;
    if (std::invoke(small, std::as_const(problem))) return std::invoke(solve, problem);
    auto parts = std::invoke(divide, problem);
    if constexpr (std::is_void_v<result>) {
      for (auto& p : parts) fork([this, &p] { (*this)(p); });
      weft::sync();
      if constexpr (!std::is_null_pointer_v<Combine>) std::invoke(combine, problem);
    } else {
      std::vector<std::optional<result>> results(std::ranges::size(parts));
      auto to = results.begin();
      for (auto& p : parts) {
        fork([this, &p, to] { to->emplace((*this)(p)); });
        ++to;
      }
      weft::sync();
      result all = std::move(*results.front());
      for (std::size_t i = 1; i != results.size(); ++i)
        all = std::invoke(combine, std::move(all), std::move(*results[i]));
      return all;
    }
  }
};

struct divide_and_conquer_function {
  template <class P, class Small, class Solve, class Divide, class Combine = std::nullptr_t>
  auto operator()(P problem, Small small, Solve solve, Divide divide, Combine combine = {}) const {
    const conquest<Small, Solve, Divide, Combine> conquer{small, solve, divide, combine};
    return conquer(problem);
  }
};

}  // namespace algorithms

inline constexpr algorithms::algorithm<algorithms::divide_and_conquer_function> divide_and_conquer{};

}  // namespace weft::inline WEFT_ABI
