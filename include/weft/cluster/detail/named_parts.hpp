// SPDX-License-Identifier: BSL-1.0
// The functions by which a class names its parts, in the spellings of cereal, which is not needed for that.
#pragma once

#include <weft/base/config.hpp>

#include <type_traits>
#include <utility>

// What weft recognises of cereal in a program that includes it.
namespace cereal {
class access;
enum class specialization;
template <class Archive, class T, specialization S>
struct specialize;
template <class T>
class NameValuePair;
template <class T>
class SizeTag;
template <class T>
struct BinaryData;
template <class Base>
struct base_class;
template <class Base>
struct virtual_base_class;
}  // namespace cereal

namespace weft::inline WEFT_ABI::remote {

class writer;
class reader;

/// What calls private members of classes whose friend it is; nothing can be asked of it unless cereal is
/// there, so that it must depend on T.
template <class T>
struct friend_of {
  using type = ::cereal::access;
};

/// Functions of these names: first members, then those beside the class. Each is an object, so that concepts
/// can ask for it.
struct serialize_member {
  template <class A, class T>
    requires requires(A& a, T& t) { t.serialize(a); }
  void operator()(A& a, T& t) const {
    t.serialize(a);
  }
  template <class A, class T, class F = typename friend_of<T>::type>
    requires(
        !requires(A& a, T& t) { t.serialize(a); } && requires(A& a, T& t) { F::member_serialize(a, t); })
  void operator()(A& a, T& t) const {
    F::member_serialize(a, t);
  }
};
struct save_member {
  template <class A, class T>
    requires requires(A& a, const T& t) { t.save(a); }
  void operator()(A& a, const T& t) const {
    t.save(a);
  }
  template <class A, class T, class F = typename friend_of<T>::type>
    requires(
        !requires(A& a, const T& t) { t.save(a); } && requires(A& a, const T& t) { F::member_save(a, t); })
  void operator()(A& a, const T& t) const {
    F::member_save(a, t);
  }
};
struct load_member {
  template <class A, class T>
    requires requires(A& a, T& t) { t.load(a); }
  void operator()(A& a, T& t) const {
    t.load(a);
  }
  template <class A, class T, class F = typename friend_of<T>::type>
    requires(
        !requires(A& a, T& t) { t.load(a); } && requires(A& a, T& t) { F::member_load(a, t); })
  void operator()(A& a, T& t) const {
    F::member_load(a, t);
  }
};
struct minimal_member {
  template <class A, class T>
    requires requires(const A& a, const T& t) { t.save_minimal(a); }
  auto operator()(const A& a, const T& t) const {
    return t.save_minimal(a);
  }
  template <class A, class T, class F = typename friend_of<T>::type>
    requires(
        !requires(const A& a, const T& t) { t.save_minimal(a); } &&
        requires(const A& a, const T& t) { F::member_save_minimal(a, t); })
  auto operator()(const A& a, const T& t) const {
    return F::member_save_minimal(a, t);
  }
  template <class A, class T, class V>
    requires requires(const A& a, T& t, const V& v) { t.load_minimal(a, v); }
  void operator()(const A& a, T& t, const V& v) const {
    t.load_minimal(a, v);
  }
  template <class A, class T, class V, class F = typename friend_of<T>::type>
    requires(
        !requires(const A& a, T& t, const V& v) { t.load_minimal(a, v); } &&
        requires(const A& a, T& t, const V& v) { F::member_load_minimal(a, t, v); })
  void operator()(const A& a, T& t, const V& v) const {
    F::member_load_minimal(a, t, v);
  }
};
struct serialize_function {
  template <class A, class T>
    requires requires(A& a, T& t) { serialize(a, t); }
  void operator()(A& a, T& t) const {
    serialize(a, t);
  }
};
struct save_function {
  template <class A, class T>
    requires requires(A& a, const T& t) { save(a, t); }
  void operator()(A& a, const T& t) const {
    save(a, t);
  }
};
struct load_function {
  template <class A, class T>
    requires requires(A& a, T& t) { load(a, t); }
  void operator()(A& a, T& t) const {
    load(a, t);
  }
};
struct minimal_function {
  template <class A, class T>
    requires requires(const A& a, const T& t) { save_minimal(a, t); }
  auto operator()(const A& a, const T& t) const {
    return save_minimal(a, t);
  }
  template <class A, class T, class V>
    requires requires(const A& a, T& t, const V& v) { load_minimal(a, t, v); }
  void operator()(const A& a, T& t, const V& v) const {
    load_minimal(a, t, v);
  }
};

/// One value that stands for all parts: its type, or void.
template <class F, class T>
struct minimal {
  using type = void;
};
template <class F, class T>
  requires requires(F f, const writer& a, const T& t) { f(a, t); }
struct minimal<F, T> {
  using type = std::remove_cvref_t<std::invoke_result_t<F, const writer&, const T&>>;
};
template <class F, class T>
concept saves_minimal =
    requires(F f, const reader& a, T& t, const typename minimal<F, T>::type& v) { f(a, t, v); };

/// How a class names its parts, numbered as cereal::specialization. `none`: it does not, or in several ways
/// without saying by cereal::specialize which one counts.
enum class spelling : signed char {
  none = -1,
  member_serialize,
  member_load_save,
  member_minimal,
  function_serialize,
  function_load_save,
  function_minimal,
};

template <class T, spelling S>
concept specialized =
    requires { sizeof(::cereal::specialize<writer, T, static_cast<::cereal::specialization>(S)>); } &&
    !std::is_base_of_v<std::false_type,
                       ::cereal::specialize<writer, T, static_cast<::cereal::specialization>(S)>>;

template <class T>
constexpr spelling find_spelling() noexcept {
  if constexpr (!std::is_class_v<T> && !std::is_union_v<T>) {
    return spelling::none;
  } else {
    constexpr bool may[] = {
        std::is_invocable_v<serialize_member, writer&, T&>,
        std::is_invocable_v<save_member, writer&, const T&> && std::is_invocable_v<load_member, reader&, T&>,
        saves_minimal<minimal_member, T>,
        std::is_invocable_v<serialize_function, writer&, T&>,
        std::is_invocable_v<save_function, writer&, const T&> &&
            std::is_invocable_v<load_function, reader&, T&>,
        saves_minimal<minimal_function, T>};
    constexpr bool said[] = {specialized<T, spelling(0)>, specialized<T, spelling(1)>,
                             specialized<T, spelling(2)>, specialized<T, spelling(3)>,
                             specialized<T, spelling(4)>, specialized<T, spelling(5)>};
    int found = 0, by = -1, chosen = -1;
    for (int i = 0; i < 6; ++i) {
      if (may[i]) ++found, by = i;
      if (may[i] && said[i]) chosen = i;
    }
    return static_cast<spelling>(chosen >= 0 ? chosen : found == 1 ? by : -1);
  }
}
template <class T>
inline constexpr spelling spelling_of = find_spelling<T>();
/// Whether a T names its parts.
template <class T>
concept names_parts = spelling_of<T> != spelling::none;

/// Appends the parts that a value names. *Throws*: what its function throws.
template <class T>
void write_parts(writer& w, const T& v) {
  // Who only sends does not change the value, though cereal has one function for both.
  if constexpr (constexpr spelling s = spelling_of<T>; s == spelling::member_serialize)
    serialize_member()(w, const_cast<T&>(v));
  else if constexpr (s == spelling::function_serialize)
    serialize_function()(w, const_cast<T&>(v));
  else if constexpr (s == spelling::member_load_save)
    save_member()(w, v);
  else if constexpr (s == spelling::function_load_save)
    save_function()(w, v);
  else if constexpr (s == spelling::member_minimal)
    w(minimal_member()(std::as_const(w), v));
  else
    w(minimal_function()(std::as_const(w), v));
}

/// Reads them. *Throws*: the same.
template <class T>
void read_parts(reader& r, T& v) {
  if constexpr (constexpr spelling s = spelling_of<T>; s == spelling::member_serialize) {
    serialize_member()(r, v);
  } else if constexpr (s == spelling::function_serialize) {
    serialize_function()(r, v);
  } else if constexpr (s == spelling::member_load_save) {
    load_member()(r, v);
  } else if constexpr (s == spelling::function_load_save) {
    load_function()(r, v);
  } else if constexpr (s == spelling::member_minimal) {
    typename minimal<minimal_member, T>::type part{};
    r(part);
    minimal_member()(std::as_const(r), v, part);
  } else {
    typename minimal<minimal_function, T>::type part{};
    r(part);
    minimal_function()(std::as_const(r), v, part);
  }
}

/// What cereal wraps around a value that it hands to an archive.
template <class T>
struct wrapped {
  static constexpr bool value = false, bytes = false;
};
template <class T>
struct wrapped<::cereal::NameValuePair<T>> {
  static constexpr bool value = true, bytes = false;
  static auto& in(auto& pair) { return pair.value; }
};
template <class T>
struct wrapped<::cereal::SizeTag<T>> {
  static constexpr bool value = true, bytes = false;
  static auto& in(auto& tag) { return tag.size; }
};
template <class T>
struct wrapped<::cereal::base_class<T>> {
  static constexpr bool value = true, bytes = false;
  static auto& in(auto& base) { return *base.base_ptr; }
};
template <class T>
struct wrapped<::cereal::virtual_base_class<T>> : wrapped<::cereal::base_class<T>> {};
template <class T>
struct wrapped<::cereal::BinaryData<T>> {
  static constexpr bool value = false, bytes = true;
};

}  // namespace weft::inline WEFT_ABI::remote
