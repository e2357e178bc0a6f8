// SPDX-License-Identifier: BSL-1.0
// How values become bytes, and bytes values again, in another process that runs the same program.
#pragma once

#include <weft/base/error.hpp>
#include <weft/cluster/detail/members.hpp>
#include <weft/cluster/detail/named_parts.hpp>
#include <weft/cluster/detail/standard_types.hpp>

#include <array>
#include <chrono>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

class sent_values;
class kept_values;

/// Whether the bytes of a T are its value, and mean the same in another process. True for numbers,
/// enumerations, std::complex, durations, and points in time of clocks that are not steady, for these begin
/// anywhere. To be specialised for classes that are trivially copyable and hold no address.
template <class T>
inline constexpr bool travels_as_bytes = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool travels_as_bytes<std::complex<T>> = std::is_arithmetic_v<T>;
template <class R, class P>
inline constexpr bool travels_as_bytes<std::chrono::duration<R, P>> = std::is_arithmetic_v<R>;
template <class C, class D>
inline constexpr bool travels_as_bytes<std::chrono::time_point<C, D>> = travels_as_bytes<D> && !C::is_steady;

/// `Around`: the types inside which the T was found, which may contain themselves.
template <class T, class... Around>
constexpr bool find_way() noexcept;
template <class T, class... Around>
inline constexpr bool has_way = find_way<T, Around...>();

/// Asks that of all members of an aggregate.
template <class... Around>
struct members_have_way {
  template <class... M>
  std::bool_constant<(has_way<M, Around...> && ...)> operator()(M&...) const {
    return {};
  }
};

/// Asks that of the types of which a type of the standard library is made.
template <class... Around>
struct part_has_way {
  template <class M>
  static constexpr bool holds = has_way<M, Around...>;
};

template <class T, class... Around>
constexpr bool members_travel() noexcept {
  if constexpr (members<T> != 0)
    return decltype(with_members(std::declval<T&>(), members_have_way<T, Around...>()))::value;
  else
    return false;
}

template <class T, class... Around>
constexpr bool find_way() noexcept {
  if constexpr (!std::is_object_v<T> || std::is_pointer_v<T> || std::is_member_pointer_v<T> ||
                std::is_const_v<T> || std::is_volatile_v<T>)
    return false;
  else if constexpr (travels_as_bytes<T>)
    return std::is_trivially_copyable_v<T>;
  else if constexpr ((std::is_same_v<T, Around> || ...) || names_parts<T>)
    return true;
  else if constexpr (parts<T>::known)
    return parts<T>::template all<part_has_way<T, Around...>>;
  else if constexpr (is_optional<T>)
    return has_way<typename T::value_type, T, Around...>;
  else if constexpr (alternatives<T>::known)
    return alternatives<T>::template all<part_has_way<T, Around...>>;
  else if constexpr (refillable<T>)
    return loses_nothing<T>() && has_way<typename loose<typename T::value_type>::type, T, Around...>;
  else if constexpr (std::is_empty_v<T>)
    return std::is_aggregate_v<T> || std::is_same_v<T, std::monostate>;
  else
    return members_travel<T, Around...>();
}

template <class T>
constexpr bool find_dense() noexcept;

/// Asks that of all members of an aggregate: how large they are together; 0 if one is not.
struct size_if_dense {
  template <class... M>
  std::integral_constant<std::size_t, (find_dense<M>() && ...) ? (sizeof(M) + ... + 0) : 0> operator()(
      M&...) const {
    return {};
  }
};

/// Whether a T that travels is nothing but bytes that travel, without gaps or values that must be checked.
template <class T>
constexpr bool find_dense() noexcept {
  if constexpr (travels_as_bytes<T>)
    return !std::is_same_v<T, bool>;
  else if constexpr (members<T> != 0 && std::is_trivially_copyable_v<T> && !std::is_empty_v<T> &&
                     !names_parts<T>)
    return decltype(with_members(std::declval<T&>(), size_if_dense()))::value == sizeof(T);
  else
    return false;
}
template <class T>
inline constexpr bool dense = find_dense<T>();

/// Containers whose elements are one block of bytes.
template <class T>
concept block = refillable<T> && std::ranges::contiguous_range<T> && dense<typename T::value_type> &&
                requires(T& c) { c.resize(std::size_t{}); };

/// Types whose values can go to another process: what `travels_as_bytes` allows; standard containers,
/// std::pair, std::tuple, std::array, std::optional and std::variant of such; aggregates of at most 16
/// members of such types (no array among them, but a std::array; what orders or hashes the elements of a
/// container is without state); and classes that name their parts as for cereal, in exactly one of its ways:
/// a member `template <class A> void serialize(A& archive)`, which calls `archive(x, y, ...)` with all parts;
/// members `save` (const) and `load`, or `save_minimal` and `load_minimal`; or functions of these names,
/// `serialize(A& archive, T& value)` and so on. They have no parameter for a version, and are private only in
/// classes whose friend is cereal::access. Never pointers, references, views. All are default constructible.
template <class T>
inline constexpr bool travels = [] {
  if constexpr (std::default_initializable<T> && std::movable<T>)
    return has_way<T>;
  else
    return false;
}();

/// Collects the bytes of values. *Cost*: a copy of each. *Thread safety*: as a vector.
class writer {
 public:
  /// What code for both directions asks an archive.
  using is_saving = std::true_type;
  using is_loading = std::false_type;
  /// Appends values, also built-in arrays of such, and what cereal wraps around values. *Throws*:
  /// std::bad_alloc, and what `serialize` throws.
  template <class... T>
  writer& operator()(const T&... values) {
    (put_argument_(values), ...);
    return *this;
  }
  template <class T>
  writer& operator&(const T& value) {
    return (*this)(value);
  }
  template <class T>
  writer& operator<<(const T& value) {
    return (*this)(value);
  }
  /// From now on it is an error to have more bytes than these. *Requires*: there are not.
  void limit(std::size_t most) noexcept { most_ = most; }
  /// Appends bytes as they are. *Throws*: weft::error beyond the limit, std::bad_alloc.
  void put(const void* from, std::size_t size) {
    if (size > most_ - bytes_.size()) throw error("weft: a value is too long to go to another process");
    const auto* const b = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), b, b + size);
  }
  /// All that was collected; may be moved away.
  std::vector<std::byte>& bytes() noexcept { return bytes_; }
  /// What knows which values the receiver of a task keeps (detail/read_value.hpp); null: it keeps none.
  void values(sent_values* of) noexcept { values_ = of; }
  sent_values* values() const noexcept { return values_; }

 private:
  template <class T>
  void put_argument_(const T& v) {
    if constexpr (std::is_array_v<T>)
      for (const auto& e : v) put_argument_(e);
    else if constexpr (wrapped<T>::value)
      put_argument_(std::as_const(wrapped<T>::in(v)));
    else if constexpr (wrapped<T>::bytes)
      put(v.data, static_cast<std::size_t>(v.size));
    else
      put_(v);
  }
  template <class T>
  void put_(const T& v) {
    static_assert(has_way<T>,
                  "weft: values of this type cannot go to another process; give it a member 'template <class "
                  "A> void serialize(A&)'");
    if constexpr (travels_as_bytes<T> || dense<T>) {
      put(&v, sizeof v);
    } else if constexpr (names_parts<T>) {
      write_parts(*this, v);
    } else if constexpr (std::is_empty_v<T>) {
      put_(std::uint8_t{});  // so that no container is longer than its bytes
    } else if constexpr (parts<T>::known) {
      std::apply([this](const auto&... p) { (this->put_(p), ...); }, v);
    } else if constexpr (is_optional<T>) {
      put_(v.has_value());
      if (v) put_(*v);
    } else if constexpr (alternatives<T>::known) {
      if (v.valueless_by_exception())
        throw error("weft: a variant without a value cannot go to another process");
      put_(static_cast<std::uint32_t>(v.index()));
      std::visit([this](const auto& a) { this->put_(a); }, v);
    } else if constexpr (block<T>) {
      put_(static_cast<std::uint64_t>(v.size()));
      put(v.data(), v.size() * sizeof(typename T::value_type));
    } else if constexpr (refillable<T>) {
      put_(static_cast<std::uint64_t>(v.size()));
      for (const auto& e : v) {
        const std::size_t before = bytes_.size();
        if constexpr (std::is_same_v<typename T::value_type, typename loose<typename T::value_type>::type>)
          put_(static_cast<const typename T::value_type&>(e));
        else
          put_(e.first), put_(e.second);
        if (bytes_.size() == before) put_(std::uint8_t{});  // as above
      }
    } else if constexpr (members<T> != 0) {
      with_members(v, [this](const auto&... m) { (this->put_(m), ...); });
    }
  }

  std::vector<std::byte> bytes_;
  std::size_t most_ = SIZE_MAX;
  sent_values* values_ = nullptr;
};

/// Makes values of the bytes that a writer has collected. Bytes that do not fit are found where they would
/// lead behind the end, or name what does not exist. *Thread safety*: as an iterator.
class reader {
 public:
  /// *Requires*: the bytes outlive this.
  explicit reader(std::span<const std::byte> from) noexcept : at_(from.data()), left_(from.size()) {}

  /// What code for both directions asks an archive.
  using is_saving = std::false_type;
  using is_loading = std::true_type;
  /// Reads values, in the order in which they were appended. *Throws*: weft::error for a damaged message;
  /// std::bad_alloc, and what `serialize` throws.
  template <class... T>
    requires((std::is_lvalue_reference_v<T> || wrapped<T>::value || wrapped<T>::bytes || names_parts<T>) &&
             ...)
  reader& operator()(T&&... values) {
    (get_argument_(values), ...);
    return *this;
  }
  template <class T>
  reader& operator&(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  template <class T>
  reader& operator>>(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  /// Reads bytes as they are. *Throws*: weft::error if there are not as many.
  void take(void* to, std::size_t size) {
    if (size > left_) refuse();
    if (size != 0) std::memcpy(to, at_, size);
    at_ += size;
    left_ -= size;
  }
  /// The next value.
  template <class T>
  T get() {
    T value{};
    get_(value);
    return value;
  }
  /// A reader of the next bytes, which are passed. *Throws*: weft::error if there are not as many.
  reader part(std::uint64_t size) {
    if (size > left_) refuse();
    const reader of_these(std::span(at_, static_cast<std::size_t>(size)));
    at_ += size;
    left_ -= static_cast<std::size_t>(size);
    return of_these;
  }
  /// How many bytes are left.
  std::size_t left() const noexcept { return left_; }
  /// What keeps values for other tasks (detail/read_value.hpp); null: there is none.
  void values(kept_values* of) noexcept { values_ = of; }
  kept_values* values() const noexcept { return values_; }
  /// Throws the error of a damaged message.
  [[noreturn]] static void refuse() {
    throw error("weft: a message from another process is damaged, or its types do not read what they write");
  }

 private:
  std::size_t count_(std::size_t size_of_one) {
    std::uint64_t n = 0;
    get_(n);
    // So that a damaged number does not lead to an allocation beyond all measure.
    if (n > left_ / size_of_one) refuse();
    return static_cast<std::size_t>(n);
  }
  template <class T, std::size_t I = 0>
  void get_alternative_(T& v, std::size_t index) {
    if constexpr (I == std::variant_size_v<T>)
      refuse();
    else if (I == index)
      get_(v.template emplace<I>());
    else
      get_alternative_<T, I + 1>(v, index);
  }
  template <class T>
  void get_argument_(T& v) {
    if constexpr (std::is_array_v<T>)
      for (auto& e : v) get_argument_(e);
    else if constexpr (wrapped<std::remove_const_t<T>>::value)
      get_argument_(wrapped<std::remove_const_t<T>>::in(v));
    else if constexpr (wrapped<std::remove_const_t<T>>::bytes)
      take(v.data, static_cast<std::size_t>(v.size));
    else
      get_(v);
  }
  template <class T>
  void get_(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t b = 0;
      get_(b);
      if (b > 1) refuse();
      v = b != 0;
    } else if constexpr (travels_as_bytes<T> || dense<T>) {
      take(&v, sizeof v);
    } else if constexpr (names_parts<T>) {
      read_parts(*this, v);
    } else if constexpr (std::is_empty_v<T>) {
      get<std::uint8_t>();
    } else if constexpr (parts<T>::known) {
      std::apply([this](auto&... p) { (this->get_(p), ...); }, v);
    } else if constexpr (is_optional<T>) {
      bool some = false;
      get_(some);
      v.reset();
      if (some) get_(v.emplace());
    } else if constexpr (alternatives<T>::known) {
      std::uint32_t index = 0;
      get_(index);
      get_alternative_(v, index);
    } else if constexpr (block<T>) {
      const std::size_t n = count_(sizeof(typename T::value_type));
      v.resize(n);
      take(v.data(), n * sizeof(typename T::value_type));
    } else if constexpr (refillable<T>) {
      using element = typename loose<typename T::value_type>::type;
      v.clear();
      for (std::size_t n = count_(1); n != 0; --n) {
        const std::size_t before = left_;
        v.insert(v.end(), get<element>());
        if (left_ == before) get<std::uint8_t>();
      }
    } else if constexpr (members<T> != 0) {
      with_members(v, [this](auto&... m) { (this->get_(m), ...); });
    }
  }

  const std::byte* at_;
  std::size_t left_;
  kept_values* values_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::remote
