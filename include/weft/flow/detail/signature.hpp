// SPDX-License-Identifier: BSL-1.0
// The parameter types that a callable declares, where they can be known.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <type_traits>

namespace weft::inline WEFT_ABI::flow {

/// Stands for a parameter whose type is not declared: generic lambdas and overloaded call operators.
struct undeclared {};

template <class... P>
struct parameters {
  static constexpr std::size_t count = sizeof...(P);
};

template <class F>
struct signature {
  static constexpr bool known = false;
};
template <class R, class... P>
struct signature<R(P...)> {
  static constexpr bool known = true;
  using types = parameters<P...>;
};
template <class R, class... P>
struct signature<R(P...) noexcept> : signature<R(P...)> {};
template <class F>
struct signature<F*> : signature<F> {};

/// The signature of a call operator. Pointers to members given as tasks stay undeclared: their first
/// parameter is the object, in several forms.
template <class Operator>
struct operator_signature {
  static constexpr bool known = false;
};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...)> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) const> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) &&> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) const&> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) && noexcept> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) const & noexcept> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) noexcept> : signature<R(P...)> {};
template <class C, class R, class... P>
struct operator_signature<R (C::*)(P...) const noexcept> : signature<R(P...)> {};
template <class F>
  requires requires { &F::operator(); }
struct signature<F> : operator_signature<decltype(&F::operator())> {};

/// The I-th of the types.
template <std::size_t I, class First, class... Rest>
struct nth : nth<I - 1, Rest...> {};
template <class First, class... Rest>
struct nth<0, First, Rest...> {
  using type = First;
};

template <std::size_t I, class Parameters>
struct nth_parameter;
template <std::size_t I, class... P>
struct nth_parameter<I, parameters<P...>> : nth<I, P...> {};

/// The declared type of parameter I of F (decayed), or undeclared.
template <class F, std::size_t I, bool = signature<F>::known>
struct parameter_of {
  using type = undeclared;
};
template <class F, std::size_t I>
struct parameter_of<F, I, true> {
  static_assert(I < signature<F>::types::count, "weft: fork has more arguments than the task has parameters");
  using type = typename nth_parameter<I, typename signature<F>::types>::type;
};

template <class F>
inline constexpr std::size_t parameter_count = 0;
template <class F>
  requires(signature<F>::known)
inline constexpr std::size_t parameter_count<F> = signature<F>::types::count;

}  // namespace weft::inline WEFT_ABI::flow
