// SPDX-License-Identifier: BSL-1.0
// How one argument of fork becomes one parameter of the task: which right it gives, what the closure keeps of
// it.
#pragma once

#include <weft/flow/shared.hpp>
#include <weft/flow/signature.hpp>

#include <utility>

namespace weft::flow {

/// What an argument or a parameter says about an object.
enum class grade : unsigned char { none, read, write, update, all };

template <class A>
struct right {  // not an object
  static constexpr grade held = grade::none;
};
template <class T>
struct right<shared<T>> {
  static constexpr grade held = grade::all;
  using value = T;
};
template <class T>
struct right<borrowed<T>> {
  static constexpr grade held = grade::all;
  using value = T;
};
template <class T>
struct right<borrowed<const T>> {
  static constexpr grade held = grade::read;
  using value = const T;
};
template <class T>
struct right<read<T>> {
  static constexpr grade held = grade::read;
  using value = const T;
};
template <class T>
struct right<write<T>> {
  static constexpr grade held = grade::write;
  using value = T;
};
template <class T>
struct right<update<T>> {
  static constexpr grade held = grade::update;
  using value = T;
};

/// Handing on (DESIGN 2.3): rows held, columns asked.
constexpr bool may_hand_on(grade held, grade asked) noexcept {
  return held == grade::all || held == grade::update || held == asked;
}

constexpr access_mode mode_of(grade g) noexcept {
  return g == grade::read ? access_mode::read : g == grade::write ? access_mode::write : access_mode::update;
}

/// An argument that is no object: copied or moved into the closure, passed on as an rvalue.
template <class Parameter, class Argument>
struct value_binding {
  static constexpr bool access = false;
  using kept = std::decay_t<Argument>;
  static constexpr access_mode mode = access_mode::read;  // not used
  static decltype(auto) keep(Argument&& a) noexcept { return std::forward<Argument>(a); }
  static kept&& pass(kept& k) noexcept { return std::move(k); }
};

/// An argument that is an object; the closure keeps its address.
template <class Parameter, class Argument>
struct access_binding {
  using given = right<std::remove_cvref_t<Argument>>;
  using asked = right<std::remove_cvref_t<Parameter>>;
  static constexpr bool access = true;
  static constexpr bool parameter_is_right = asked::held != grade::none;

  static_assert(
      parameter_is_right || given::held != grade::all,
      "weft: the right on this object is not named; name it at the call, as weft::read(x), weft::write(x) or "
      "weft::update(x), or declare the parameter as weft::read<T>, weft::write<T> or weft::update<T>");
  static constexpr grade wanted = parameter_is_right ? asked::held : given::held;
  static_assert(
      given::held != grade::read || wanted == grade::read || wanted == grade::all,
      "weft: a task that holds 'read' on an object may hand on 'read' only; this parameter asks for more");
  static_assert(
      given::held != grade::write || wanted == grade::write || wanted == grade::all,
      "weft: a task that holds 'write' on an object may hand on 'write' only; this parameter asks for "
      "the old value");
  static_assert(wanted != grade::all,
                "weft: a parameter of type shared or borrowed cannot be passed to a task; declare "
                "it as weft::read<T>, weft::write<T> or weft::update<T>");
  static_assert(given::held != grade::all || std::is_lvalue_reference_v<Argument> ||
                    !std::is_same_v<std::remove_cvref_t<Argument>, shared<typename given::value>>,
                "weft: a temporary shared object ends before the task that is to use it; give it a name");
  static_assert(parameter_is_right || wanted != grade::read || !std::is_lvalue_reference_v<Parameter> ||
                    std::is_const_v<std::remove_reference_t<Parameter>>,
                "weft: the right is 'read', so the parameter must not be a reference to non-const; declare "
                "it const, or ask "
                "for weft::update or weft::write");

  using value = typename given::value;
  using kept = value*;
  static constexpr access_mode mode = mode_of(wanted);

  static kept keep(Argument&& a) {
    if constexpr (given::held == grade::all && wanted != grade::read)
      return writable(a);
    else
      return address(a);
  }
  /// What the body gets for the kept address.
  static decltype(auto) pass(kept k) noexcept {
    if constexpr (parameter_is_right) {
      static_assert(std::is_same_v<std::remove_cv_t<value>, std::remove_cv_t<typename asked::value>>,
                    "weft: the parameter's right is on another type than the object's");
      return key::make<std::remove_cvref_t<Parameter>>(k);
    } else if constexpr (wanted == grade::read) {
      return static_cast<const value&>(*k);
    } else {
      return static_cast<value&>(*k);
    }
  }

 private:
  static kept writable(shared<value>& x) { return address_to_write(x); }
  static kept writable(const borrowed<value>& x) noexcept { return address(x); }
};

/// The binding of one argument to one parameter (types as declared; undeclared where unknown).
template <class Parameter, class Argument>
using binding = std::conditional_t<right<std::remove_cvref_t<Argument>>::held == grade::none,
                                   value_binding<Parameter, Argument>, access_binding<Parameter, Argument>>;

}  // namespace weft::flow
