// SPDX-License-Identifier: BSL-1.0
// What an archive has to know of the types of the standard library.
#pragma once

#include <weft/base/config.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace weft::inline WEFT_ABI::remote {

/// The class that has the member, which may be a base of the one that was named. For decltype only.
template <class C, class Function>
C class_of(Function C::*);
/// Containers of the standard library, and those like them, that can be filled again; and classes derived
/// from one that add no members.
template <class T>
concept refillable = std::ranges::sized_range<T> && requires(T& c, typename T::value_type v) {
  requires sizeof(decltype(class_of(&T::clear))) == sizeof(T);
  c.clear();
  c.insert(c.end(), std::move(v));
};
/// Whether nothing is lost of a container that is filled again: what orders or hashes elements has no state.
template <class T>
constexpr bool loses_nothing() noexcept {
  bool empty = true;
  if constexpr (requires { typename T::key_compare; })
    empty = empty && std::is_empty_v<typename T::key_compare>;
  if constexpr (requires { typename T::hasher; }) empty = empty && std::is_empty_v<typename T::hasher>;
  if constexpr (requires { typename T::key_equal; }) empty = empty && std::is_empty_v<typename T::key_equal>;
  return empty;
}
/// As an element is made outside its container: that of a map, without const.
template <class T>
struct loose {
  using type = T;
};
template <class K, class V>
struct loose<std::pair<const K, V>> {
  using type = std::pair<K, V>;
};

/// The types that a pair, a tuple or an array is made of.
template <class T>
struct parts {
  static constexpr bool known = false;
};
template <class... T>
struct parts<std::tuple<T...>> {
  static constexpr bool known = true;
  /// Whether C, an object, says true of all of them.
  template <class C>
  static constexpr bool all = (C::template holds<T> && ...);
};
template <class T, class U>
struct parts<std::pair<T, U>> : parts<std::tuple<T, U>> {};
template <class T, std::size_t N>
struct parts<std::array<T, N>> : parts<std::tuple<T>> {};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
struct alternatives {
  static constexpr bool known = false;
};
template <class... T>
struct alternatives<std::variant<T...>> : parts<std::tuple<T...>> {};

}  // namespace weft::inline WEFT_ABI::remote
