// SPDX-License-Identifier: BSL-1.0
// Tasks that have to be able to go to another process.
#pragma once

#include <weft/cluster/detail/task_travel.hpp>
#include <weft/flow/fork.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI {

/// Says of a task that it is to be able to go to another process: `weft::fork(weft::anywhere, f, a);`
struct anywhere_t {
  explicit anywhere_t() = default;
};
inline constexpr anywhere_t anywhere{};

namespace remote::detail {

/// Compiles if the N-th argument of a task travels.
template <std::size_t N, class Adaptor>
constexpr void require_argument_that_travels() noexcept {
  static_assert(
      guest_argument<Adaptor>::travels,
      "weft: an argument of this task cannot go to another process: pointers, references and views cannot, "
      "nor can types without an archive, weak rights, lists of rights, parts of arrays and streams");
}
/// Compiles if a task of these travels.
template <class Callable, class... Adaptors, std::size_t... I>
constexpr void require_task_that_travels(std::index_sequence<I...>) noexcept {
  static_assert(
      callable_travels<Callable>,
      "weft: the callable of this task cannot go to another process: take a function, a lambda that "
      "captures nothing, or a function object whose members travel");
  (require_argument_that_travels<I, Adaptors>(), ...);
  using result = std::remove_cvref_t<flow::called<Callable, Adaptors...>>;
  if constexpr (!std::is_void_v<result>)
    static_assert(value_travels<result>,
                  "weft: the result of this task cannot come back from another process");
}
template <class Callable, class... A, std::size_t... I>
constexpr void require_travel(std::index_sequence<I...> each) noexcept {
  require_task_that_travels<Callable,
                            flow::argument_adaptor<typename flow::parameter_of<Callable, I>::type, A>...>(
      each);
}

}  // namespace remote::detail

/// fork, where it is an error of the program if the task can never go to another process: the compiler says
/// why. Otherwise the same as fork without `anywhere`. *Example*: `weft::fork(weft::anywhere, render, scene,
/// image);`
template <class F, class... A>
  requires(!std::is_same_v<std::remove_cvref_t<F>, task_options>)
WEFT_ALWAYS_INLINE auto fork(anywhere_t, F&& f, A&&... arguments) {
  remote::detail::require_travel<std::decay_t<F>, A...>(std::index_sequence_for<A...>{});
  return weft::fork(std::forward<F>(f), std::forward<A>(arguments)...);
}

/// The same, with options.
template <class F, class... A>
WEFT_ALWAYS_INLINE auto fork(anywhere_t, task_options options, F&& f, A&&... arguments) {
  remote::detail::require_travel<std::decay_t<F>, A...>(std::index_sequence_for<A...>{});
  return weft::fork(options, std::forward<F>(f), std::forward<A>(arguments)...);
}

}  // namespace weft::inline WEFT_ABI
