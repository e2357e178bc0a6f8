// SPDX-License-Identifier: BSL-1.0
// How one argument of fork becomes one parameter of the task: which right it gives, what the closure keeps of
// it.
#pragma once

#include <weft/flow/array.hpp>
#include <weft/flow/detail/signature.hpp>
#include <weft/flow/reduce.hpp>
#include <weft/flow/shared.hpp>
#include <weft/flow/weak.hpp>

#include <cstddef>
#include <iterator>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI::flow {

/// What the library knows of a type of argument or parameter.
template <class A>
struct right {  // not an object
  static constexpr right_kind held = right_kind::none;
  static constexpr bool weak = false;
};
template <class T, right_kind Held, bool Weak = false>
struct right_on {
  static constexpr right_kind held = Held;
  static constexpr bool weak = Weak;
  using value = T;
};
template <class T>
struct right<shared<T>> : right_on<T, right_kind::all> {};
template <class T>
struct right<borrowed<T>> : right_on<T, right_kind::all> {};
template <class T>
struct right<borrowed<const T>> : right_on<const T, right_kind::read> {};
template <class T>
struct right<slice<T>> : right_on<T[], right_kind::all> {};
template <class T>
struct right<read<T>> : right_on<const T, right_kind::read> {};
template <class T>
struct right<read<T[]>> : right_on<T[], right_kind::read> {};
template <class T, bool Own>
struct right<write<T, Own>> : right_on<T, right_kind::write> {};
template <class T>
struct right<update<T>> : right_on<T, right_kind::update> {};
template <class T>
struct right<commute<T>> : right_on<T, right_kind::commute> {};
template <class T, class Op>
struct right<reduce<T, Op>> : right_on<T, right_kind::reduce> {};
template <class T>
struct right<weak_read<T>> : right_on<const T, right_kind::read, true> {};
template <class T>
struct right<weak_read<T[]>> : right_on<T[], right_kind::read, true> {};
template <class T>
struct right<weak_write<T>> : right_on<T, right_kind::write, true> {};
template <class T>
struct right<weak_update<T>> : right_on<T, right_kind::update, true> {};
template <class T, class Op>
struct right<weak_reduce<T, Op>> : right_on<T, right_kind::reduce, true> {};

template <class A>
using right_of = right<std::remove_cvref_t<A>>;

/// Containers of rights: std::vector<weft::read<T>> and the like.
template <class A>
concept list_of_rights =
    requires(const std::remove_cvref_t<A>& a) {
      std::begin(a);
      std::end(a);
      typename std::remove_cvref_t<A>::value_type;
    } && right_of<A>::held == right_kind::none &&
    right_of<typename std::remove_cvref_t<A>::value_type>::held != right_kind::none &&
    right_of<typename std::remove_cvref_t<A>::value_type>::held != right_kind::all;

/// Where a right keeps the address of its object; null: it is on a part of an array.
template <class Right>
void* place_of(const Right& r) noexcept {
  if constexpr (std::is_array_v<typename right_of<Right>::value>)
    return nullptr;
  else
    return key::place(r);
}

/// Tells `see` the access that a right gives, which a closure keeps at `place`.
template <class Right, class See>
void tell(const Right& r, void* place, See&& see) {
  using known = right_of<Right>;
  static_assert(known::held != right_kind::reduce,
                "weft: lists of rights to contribute are not supported; fork one "
                "task for each");
  if constexpr (std::is_array_v<typename known::value>)
    see(key::extent(key::part(r), mode_of(known::held)));
  else
    see(sched::access{.object = address(r), .mode = mode_of(known::held), .place = place});
}

/// An argument that is no object: copied or moved into the closure, passed on as an rvalue.
template <class Parameter, class Argument>
struct value_binding {
  static constexpr bool access = false, strong = false, weak = false, more = false, plain = true;
  static constexpr std::uint32_t parts = 0;
  using kept = std::decay_t<Argument>;
  static constexpr access_mode mode = access_mode::read;  // not used
  static decltype(auto) keep(Argument&& a) noexcept { return std::forward<Argument>(a); }
  static kept&& pass(kept& k) noexcept { return std::move(k); }
};

/// A container of rights, as a closure keeps it. The body takes the container itself, at a time when a thief
/// may be looking at the closure: so that this one, and those behind it, can be stolen, a deferred closure
/// has its rights once more, apart.
template <class Container>
struct kept_list {
  using right = typename Container::value_type;
  struct listed {
    right copy;
    void* place;  ///< that of the original in the container
  };
  static_assert(std::is_trivially_destructible_v<right>);

  Container rights;
  const listed* privatized = nullptr;
  std::size_t count = 0;  ///< how many are apart

  template <class C>
    requires std::is_same_v<std::remove_cvref_t<C>, Container>
  kept_list(C&& c) noexcept(std::is_nothrow_constructible_v<Container, C>) : rights(std::forward<C>(c)) {}

  /// Notes the rights in memory that lasts as long as the closure.
  /// *Requires*: this does not move any more.
  /// *Throws*: std::bad_alloc.
  void set_apart(sched::arena& memory) {
    const auto n = static_cast<std::size_t>(std::distance(std::begin(rights), std::end(rights)));
    auto* const all = static_cast<listed*>(memory.allocate(n * sizeof(listed), alignof(listed)));
    for (const right& r : rights) ::new (all + count++) listed{r, place_of(r)};
    privatized = all;
  }
  template <class See>
  void tell_all(See&& see) const {
    if (privatized != nullptr)
      for (const listed& each : std::span(privatized, count)) tell(each.copy, each.place, see);
    else
      for (const right& r : rights) tell(r, place_of(r), see);
  }
};

/// An argument that is a container of rights; it is passed on as an rvalue.
template <class Parameter, class Argument>
struct list_binding {
  using element = right_of<typename std::remove_cvref_t<Argument>::value_type>;
  static constexpr bool access = false, strong = !element::weak, weak = element::weak, more = true,
                        plain = false;
  static constexpr std::uint32_t parts = 0;
  using kept = kept_list<std::decay_t<Argument>>;
  static constexpr access_mode mode = access_mode::read;  // not used
  static decltype(auto) keep(Argument&& a) noexcept { return std::forward<Argument>(a); }
  static void set_apart(kept& k, sched::arena& memory) { k.set_apart(memory); }
  static std::decay_t<Argument>&& pass(kept& k) noexcept { return std::move(k.rights); }
  template <class See>
  static void tell_all(const kept& k, std::uint32_t, See&& see) {
    k.tell_all(see);
  }
};

/// What binding an object to a parameter demands, in sentences.
template <class Parameter, class Argument>
struct object_binding {
  using given = right_of<Argument>;
  using asked = right_of<Parameter>;
  static constexpr bool parameter_is_right = asked::held != right_kind::none;

  static_assert(
      parameter_is_right || given::held != right_kind::all,
      "weft: the right on this object is not named; name it at the call, as weft::read(x), weft::write(x) or "
      "weft::update(x), or declare the parameter as weft::read<T>, weft::write<T> or weft::update<T>");
  static constexpr right_kind wanted = parameter_is_right ? asked::held : given::held;
  static_assert(
      given::held != right_kind::read || wanted == right_kind::read || wanted == right_kind::all,
      "weft: a task that holds 'read' on an object may delegate 'read' only; this parameter asks for more");
  static_assert(
      given::held != right_kind::write || wanted == right_kind::write || wanted == right_kind::all,
      "weft: a task that holds 'write' on an object may delegate 'write' only; this parameter asks for "
      "the old value");
  static_assert(given::held != right_kind::reduce || wanted == right_kind::reduce ||
                    wanted == right_kind::all,
                "weft: a task that may only contribute to an object may delegate that right only, with the "
                "same operation");
  static_assert(given::held != right_kind::commute || wanted == right_kind::commute ||
                    wanted == right_kind::all,
                "weft: a task that commutes on an object may not delegate another right on it");
  static_assert(wanted != right_kind::all,
                "weft: a parameter of type shared, borrowed or slice cannot be passed to a task; declare "
                "it as weft::read<T>, weft::write<T> or weft::update<T>");
  static_assert(given::held != right_kind::all || std::is_lvalue_reference_v<Argument> ||
                    !std::is_same_v<std::remove_cvref_t<Argument>, shared<typename given::value>>,
                "weft: a temporary shared object ends before the task that is to use it; give it a name");
  static_assert(parameter_is_right || wanted != right_kind::read || !std::is_lvalue_reference_v<Parameter> ||
                    std::is_const_v<std::remove_reference_t<Parameter>>,
                "weft: the right is 'read', so the parameter must not be a reference to non-const; declare "
                "it const, or ask "
                "for weft::update or weft::write");
  static_assert(
      !given::weak || parameter_is_right || std::is_same_v<Parameter, undeclared>,
      "weft: a weak right gives no use of the value; declare the parameter as a right, weak or not");
  static constexpr bool is_weak = parameter_is_right ? asked::weak : given::weak;
  using value = typename given::value;
  /// The right that the task gets.
  using granted =
      std::conditional_t<parameter_is_right, std::remove_cvref_t<Parameter>,
                         std::conditional_t<std::is_same_v<std::remove_cvref_t<Argument>, write<value, true>>,
                                            write<value>, std::remove_cvref_t<Argument>>>;
  static constexpr bool strong = !is_weak, weak = is_weak;
  static constexpr access_mode mode = mode_of(wanted);
};

/// How versions of a T are made.
template <class T>
inline constexpr sched::version_kind versions_of{
    sizeof(T), alignof(T), [](void* place) { ::new (place) T; },
    [](void* from, void* to) { *static_cast<T*>(to) = std::move(*static_cast<T*>(from)); },
    [](void* place) { std::destroy_at(static_cast<T*>(place)); }};

/// Whether an object of type T that is named by a handle may be renamed.
template <class T>
inline constexpr bool renamable =
    std::is_nothrow_default_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;

/// An argument that is a whole object; the closure keeps its address.
template <class Parameter, class Argument>
struct access_binding : object_binding<Parameter, Argument> {
  using base = object_binding<Parameter, Argument>;
  using base::parameter_is_right, base::wanted;
  using typename base::given, typename base::asked, typename base::value;
  static constexpr bool access = true, more = false, plain = wanted != right_kind::commute;
  static constexpr std::uint32_t parts = 0;
  using kept = value*;
  /// A right that a task holds may be on memory of the program's own, which is never renamed.
  static constexpr bool renames = wanted == right_kind::write && !base::is_weak && renamable<value> &&
                                  (std::is_same_v<std::remove_cvref_t<Argument>, shared<value>> ||
                                   std::is_same_v<std::remove_cvref_t<Argument>, write<value, true>>);
  static constexpr const sched::version_kind* kind() noexcept {
    if constexpr (renames)
      return &versions_of<value>;
    else
      return nullptr;
  }

  static kept keep(Argument&& a) {
    if constexpr (given::held != right_kind::all)
      return const_cast<kept>(address(a));
    else if constexpr (wanted == right_kind::read)
      return readable(a);
    else
      return writable(a);
  }
  /// What the body gets for the kept address.
  static decltype(auto) pass(kept k) noexcept {
    if constexpr (parameter_is_right || base::is_weak) {
      if constexpr (parameter_is_right)
        static_assert(std::is_same_v<std::remove_cv_t<value>, std::remove_cv_t<typename asked::value>>,
                      "weft: the parameter's right is on another type than the object's");
      return key::make<typename base::granted>(k);
    } else if constexpr (wanted == right_kind::read) {
      return static_cast<const value&>(*k);
    } else {
      return static_cast<value&>(*k);
    }
  }

 private:
  static kept readable(const shared<value>& x) noexcept { return address_to_read(x); }
  static kept readable(const borrowed<value>& x) noexcept { return address(x); }
  static kept writable(shared<value>& x) { return address_to_write(x); }
  static kept writable(const borrowed<value>& x) noexcept { return address(x); }
};

/// An argument that is a part of an array; the closure keeps the right.
template <class Parameter, class Argument>
struct slice_binding : object_binding<Parameter, Argument> {
  using base = object_binding<Parameter, Argument>;
  using base::parameter_is_right, base::wanted;
  static constexpr bool access = false, more = true, plain = false;
  static constexpr std::uint32_t parts = 0;
  using kept = typename base::granted;
  static_assert(wanted != right_kind::commute && wanted != right_kind::reduce,
                "weft: parts of arrays have the rights read, write and update only");

  static kept keep(const std::remove_cvref_t<Argument>& a) noexcept { return kept(a); }
  static decltype(auto) pass(kept& k) noexcept {
    if constexpr (parameter_is_right || base::is_weak || std::is_same_v<Parameter, undeclared>)
      return kept(k);
    else
      return k.span();
  }
  template <class See>
  static void tell_all(const kept& k, std::uint32_t, See&& see) {
    tell(k, place_of(k), see);
  }
};

/// An argument that is the right to delegate contributing. Where the task does not start at once, it is
/// ordered like one that updates: what its children contribute goes straight to the object.
template <class Parameter, class T, class Op>
struct weak_reduce_binding : object_binding<Parameter, weak_reduce<T, Op>> {
  static constexpr bool access = false, more = true, plain = false;
  static constexpr std::uint32_t parts = 0;
  using kept = weak_reduce<T, Op>;

  static kept keep(const weak_reduce<T, Op>& a) { return a; }
  static kept pass(kept& k) { return k; }
  template <class See>
  static void tell_all(const kept& k, std::uint32_t, See&& see) {
    see(sched::access{.object = address(k), .mode = access_mode::update, .place = key::place(k)});
  }
};

/// An argument that is a right to contribute; the closure keeps what is contributed until its turn.
template <class Parameter, class Argument>
struct reduce_binding;
template <class Parameter, class T, class Op>
struct reduce_binding_to : object_binding<Parameter, reduce<T, Op>> {
  static constexpr bool access = false, more = true, plain = false;
  static constexpr std::uint32_t parts = 1;
  using kept = contribution<T, Op>;

  template <class Held>
  static kept keep(const Held& a) {
    return {address(a), key::operation(a), key::outer(a)};
  }
  static reduce<T, Op> pass(kept& k) { return key::make<reduce<T, Op>>(&k); }
  template <class See>
  static void tell_all(const kept& k, std::uint32_t part, See&& see) {
    see(sched::access{.object = k.object,
                      .mode = access_mode::reduce,
                      .operation = k.operation(),
                      .part = part,
                      .place = static_cast<void*>(const_cast<T**>(&k.object))});
  }
};
template <class Parameter, class T, class Op>
struct reduce_binding<Parameter, reduce<T, Op>> : reduce_binding_to<Parameter, T, Op> {};
template <class Parameter, class T, class Op>
struct reduce_binding<Parameter, weak_reduce<T, Op>>
    : std::conditional_t<right_of<Parameter>::held == right_kind::reduce && !right_of<Parameter>::weak,
                         reduce_binding_to<Parameter, T, Op>, weak_reduce_binding<Parameter, T, Op>> {};

/// Adaptors that higher rooms make: specialised by the type of the argument, with a member `type`. Such a
/// binding may have `defer(kept&, closure&)`, which makes what the closure keeps, `begin_run(kept&)`,
/// `end_well(kept&)`, for a deferred task that has not thrown, `drop(kept&)`, for one that is dropped inside
/// fork, and `object(kept)`, the address of an object that the task reads on top (`mode`).
template <class Parameter, class Argument>
struct special_binding;

template <class Parameter, class Argument>
constexpr auto choose_binding() {
  using given = right_of<Argument>;
  using special = special_binding<Parameter, std::remove_cvref_t<Argument>>;
  if constexpr (requires { typename special::type; })
    return std::type_identity<typename special::type>();
  else if constexpr (list_of_rights<Argument>)
    return std::type_identity<list_binding<Parameter, Argument>>();
  else if constexpr (given::held == right_kind::none)
    return std::type_identity<value_binding<Parameter, Argument>>();
  else if constexpr (given::held == right_kind::reduce)
    return std::type_identity<reduce_binding<Parameter, std::remove_cvref_t<Argument>>>();
  else if constexpr (std::is_array_v<typename given::value>)
    return std::type_identity<slice_binding<Parameter, Argument>>();
  else
    return std::type_identity<access_binding<Parameter, Argument>>();
}

/// The binding of one argument to one parameter (types as declared; undeclared where unknown).
template <class Parameter, class Argument>
using argument_adaptor = typename decltype(choose_binding<Parameter, Argument>())::type;

/// Whether a task with these bindings has rights on objects, but only weak ones.
template <class... Adaptors>
inline constexpr bool weak_only = (Adaptors::weak || ...) && !(Adaptors::strong || ...);

}  // namespace weft::inline WEFT_ABI::flow
