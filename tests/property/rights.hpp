// SPDX-License-Identifier: BSL-1.0
// The library's types for the kinds of arguments that random programs have.
#pragma once

#include "program.hpp"

#include <weft/weft.hpp>

#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace property {

/// Operations of contributions: empty types, a pointer, and one with a state.
struct composed {
  template <class V>
  V operator()(V x, V y) const {
    return V(combine(0, std::uint64_t(x), std::uint64_t(y)));
  }
};
struct composed_back {
  template <class V>
  V operator()(V x, V y) const {
    return V(combine(1, std::uint64_t(x), std::uint64_t(y)));
  }
};
template <class V>
V composed_in_disguise(V x, V y) {
  return V(combine(2, std::uint64_t(x), std::uint64_t(y)));
}
struct composed_by_state {
  std::uint64_t word = state;
  template <class V>
  V operator()(V x, V y) const {
    return V(compose(std::uint64_t(x) ^ word, std::uint64_t(y) ^ word) ^ word);
  }
};
template <class V, int N>
using operation_t = std::tuple_element_t<static_cast<std::size_t>(N),
                                         std::tuple<composed, composed_back, V (*)(V, V), composed_by_state>>;
template <class V, int N>
operation_t<V, N> operation() {
  if constexpr (N == 2)
    return &composed_in_disguise<V>;
  else
    return {};
}

/// The right on one object, or one part of an array, that a kind names.
template <class V, kind K>
auto right_type() {
  constexpr properties p = of(K);
  if constexpr (p.array) {
    if constexpr (p.right == grade::read)
      return std::type_identity<std::conditional_t<p.weak, weft::weak_read<V[]>, weft::read<V[]>>>();
    else if constexpr (p.right == grade::write)
      return std::type_identity<std::conditional_t<p.weak, weft::weak_write<V[]>, weft::write<V[]>>>();
    else
      return std::type_identity<std::conditional_t<p.weak, weft::weak_update<V[]>, weft::update<V[]>>>();
  } else if constexpr (p.right == grade::reduce) {
    using op = operation_t<V, p.operation>;
    return std::type_identity<std::conditional_t<p.weak, weft::weak_reduce<V, op>, weft::reduce<V, op>>>();
  } else if constexpr (p.right == grade::commute) {
    return std::type_identity<weft::commute<V>>();
  } else if constexpr (p.right == grade::read) {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_read<V>, weft::read<V>>>();
  } else if constexpr (p.right == grade::write) {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_write<V>, weft::write<V>>>();
  } else {
    return std::type_identity<std::conditional_t<p.weak, weft::weak_update<V>, weft::update<V>>>();
  }
}
template <class V, kind K>
using right = typename decltype(right_type<V, K>())::type;

/// The parameter of a task function.
template <class V, kind K>
auto parameter_type() {
  constexpr properties p = of(K);
  using element = std::conditional_t<p.right == grade::read, const V, V>;
  if constexpr (p.list)
    return std::type_identity<std::vector<right<V, K>>>();
  else if constexpr (!p.plain)
    return std::type_identity<right<V, K>>();
  else if constexpr (p.array)
    return std::type_identity<std::span<element>>();
  else
    return std::type_identity<element&>();
}
template <class V, kind K>
using parameter = typename decltype(parameter_type<V, K>())::type;

}  // namespace property
