// SPDX-License-Identifier: BSL-1.0
// The members of an aggregate, found without its help.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

inline constexpr std::size_t most_members = 16;

/// Initialises a member of any type, but no base class of T.
template <class T>
struct any_member_of {
  template <class U>
    requires(!std::is_base_of_v<U, T>)
  constexpr operator U() const noexcept {
    __builtin_unreachable();  // never called
  }
};

template <class T, std::size_t... Before, std::size_t... In, std::size_t... After>
constexpr bool takes(std::index_sequence<Before...>, std::index_sequence<In...>,
                     std::index_sequence<After...>) noexcept {
  if constexpr (sizeof...(In) == 0)
    return requires { T{(void(Before), any_member_of<T>())..., (void(After), any_member_of<T>())...}; };
  else
    return requires {
      T{(void(Before), any_member_of<T>())...,
        {(void(In), any_member_of<T>())...},
        (void(After), any_member_of<T>())...};
    };
}
/// Whether a T can be made of so many initialisers, of which `In` stand in braces.
template <class T, std::size_t Before, std::size_t In = 0, std::size_t After = 0>
inline constexpr bool takes_initialisers = takes<T>(
    std::make_index_sequence<Before>(), std::make_index_sequence<In>(), std::make_index_sequence<After>());

/// The most initialisers of a T: its members, with arrays counted by their elements.
template <class T, std::size_t N = most_members>
constexpr std::size_t count_initialisers() noexcept {
  if constexpr (N == 0)
    return 0;
  else if constexpr (takes_initialisers<T, N>)
    return N;
  else
    return count_initialisers<T, N - 1>();
}
/// Whether there is an array among the members: the only thing that takes several initialisers in braces, and
/// as many fewer behind them.
template <class T, std::size_t N, std::size_t At = 0, std::size_t In = 2>
constexpr bool has_array() noexcept {
  if constexpr (At >= N)
    return false;
  else if constexpr (At + In > N)
    return has_array<T, N, At + 1, 2>();
  else if constexpr (takes_initialisers<T, At, In, N - At - In> &&
                     !takes_initialisers<T, At, In, N - At - In + 1>)
    return true;
  else
    return has_array<T, N, At, In + 1>();
}

/// How many members a T has that can be named; 0 where that is unknown: no aggregate, a base class, an array
/// among the members, or more members than `most_members`.
template <class T>
constexpr std::size_t count_members() noexcept {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    if constexpr (!takes_initialisers<T, most_members + 1>) {
      constexpr std::size_t n = count_initialisers<T>();
      if constexpr (n != 0 && !has_array<T, n>()) return n;
    }
  }
  return 0;
}
template <class T>
inline constexpr std::size_t members = count_members<std::remove_cv_t<T>>();

/// Calls `see` with all members. *Requires*: members<T> != 0.
template <class T, class See>
constexpr decltype(auto) with_members(T& x, See&& see) {
  constexpr std::size_t n = members<T>;
  // clang-format off
  if constexpr (n == 1) { auto& [a] = x; return see(a); }
  else if constexpr (n == 2) { auto& [a, b] = x; return see(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = x; return see(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = x; return see(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = x; return see(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = x; return see(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = x; return see(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = x; return see(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = x; return see(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = x; return see(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = x; return see(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x; return see(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x; return see(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x; return see(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x; return see(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x; return see(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  // clang-format on
}

}  // namespace weft::inline WEFT_ABI::remote
