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
  using result_of = std::remove_cvref_t<std::invoke_result_t<Solve&, P&>>;

  template <class P>
  result_of<P> operator()(P& problem) const {
    if (std::invoke(small, std::as_const(problem))) return std::invoke(solve, problem);
    auto parts = std::invoke(divide, problem);
    if (std::ranges::begin(parts) == std::ranges::end(parts))
      throw error("weft: divide_and_conquer: a problem was divided into no parts");
    if constexpr (std::is_void_v<result_of<P>>) {
      run_each(parts, [this](auto& part) { (*this)(part); });
      if constexpr (!std::is_null_pointer_v<Combine>) std::invoke(combine, problem);
    } else {
      using part_type = std::remove_reference_t<decltype(*std::ranges::begin(parts))>;
      struct job {
        part_type* part;
        std::optional<result_of<P>> result = std::nullopt;
      };
      std::vector<job> jobs;
      for (auto& part : parts) jobs.push_back(job{&part});
      run_each(jobs, [this](job& j) { j.result.emplace((*this)(*j.part)); });
      result_of<P> all = std::move(*jobs.front().result);
      for (std::size_t i = 1; i != jobs.size(); ++i)
        all = std::invoke(combine, std::move(all), std::move(*jobs[i].result));
      return all;
    }
  }
};

struct divide_and_conquer_function {
  template <class P, class Small, class Solve, class Divide, class Combine = std::nullptr_t>
  std::remove_cvref_t<std::invoke_result_t<Solve&, P&>> operator()(P problem, Small small, Solve solve,
                                                                   Divide divide,
                                                                   Combine combine = {}) const {
    runs_serially(true);  // waits for what the caller has forked, as where parts are tasks
    const conquest<Small, Solve, Divide, Combine> conquer{small, solve, divide, combine};
    return conquer(problem);
  }
};

}  // namespace algorithms

/// `divide_and_conquer(problem, small, solve, divide, combine)`: where `small(problem)`, the result is
/// `solve(problem)`; else the problem is divided by `divide(problem)` into a range of problems of the same
/// type (a std::array, a std::vector), at least one, and their results are combined from left to right by
/// `combine(left, right)`. Where `solve` returns nothing, `combine(problem)` is called when all parts have
/// ended, and may be left out.
/// *Requires*: all may be called for several problems at the same time; results can be moved.
/// *Effects*: a part is a task with children of its own; most run as plain calls where no worker is idle.
/// *Returns*: the result. *Throws*: what they throw first in the serial recursion.
/// *Example*: `weft::divide_and_conquer(rt, board, is_nearly_full, count, place_next, std::plus<>())`
inline constexpr algorithms::algorithm<algorithms::divide_and_conquer_function> divide_and_conquer{};

}  // namespace weft::inline WEFT_ABI
