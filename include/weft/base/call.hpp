// SPDX-License-Identifier: BSL-1.0
// Calls whatever can be called: std::invoke, whose header costs a fifth of a second in each translation unit.
#pragma once

#include <weft/base/config.hpp>

#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI::base {

template <class T, class Class>
std::type_identity<Class> class_of_member(T Class::*);

/// The object behind what a pointer to a member is called with: itself, or what a pointer (also one that is
/// an object, whose get() returns a pointer) or a reference wrapper (whose get() returns a reference) points
/// at.
template <class Member, class Object>
WEFT_ALWAYS_INLINE decltype(auto) object_of(Object&& o) noexcept {
  using owner = typename decltype(class_of_member(std::declval<Member>()))::type;
  if constexpr (std::is_base_of_v<owner, std::remove_cvref_t<Object>>)
    return std::forward<Object>(o);
  else if constexpr (requires { requires std::is_lvalue_reference_v<decltype(o.get())>; })
    return o.get();
  else
    return *std::forward<Object>(o);
}

// Conversions of arguments are the caller's, as they are in std::invoke, whose header warns of none.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"

/// *Requires*: std::is_invocable<F, A...>. *Returns*, *Throws*: as std::invoke.
template <class F, class... A>
WEFT_ALWAYS_INLINE decltype(auto) call(F&& f, A&&... arguments) {
  return std::forward<F>(f)(std::forward<A>(arguments)...);
}
template <class F, class Object, class... A>
  requires std::is_member_pointer_v<std::remove_cvref_t<F>>
WEFT_ALWAYS_INLINE decltype(auto) call(F&& f, Object&& o, A&&... arguments) {
  using member = std::remove_cvref_t<F>;
  if constexpr (std::is_member_function_pointer_v<member>)
    return (object_of<member>(std::forward<Object>(o)).*f)(std::forward<A>(arguments)...);
  else
    return (object_of<member>(std::forward<Object>(o)).*f);
}

#pragma GCC diagnostic pop

}  // namespace weft::inline WEFT_ABI::base
