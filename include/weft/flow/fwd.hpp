// SPDX-License-Identifier: BSL-1.0
// Forward declarations of the room, and the key by which its parts reach an object's address.
#pragma once

#include <weft/base/config.hpp>
#include <weft/task/access.hpp>

#include <memory>
#include <span>
#include <type_traits>

namespace weft::inline WEFT_ABI {

template <class T>
class shared;
template <class T>
class borrowed;
template <class T>
class read;
template <class T, bool Own = false>
class write;
template <class T>
class update;
template <class T>
class commute;
template <class T, class Op>
class reduce;
template <class T>
class weak_read;
template <class T>
class weak_write;
template <class T>
class weak_update;
template <class T, class Op>
class weak_reduce;
template <class T>
class slice;
template <class T>
class shared_array;

namespace flow {

template <class T, class Op>
struct contribution;

/// Marks constructors that only this room may call.
struct trusted {};

/// Opens the handles and rights for this room.
struct key {
  template <class Right>
  static auto* address(const Right& r) noexcept {
    return r.value_;
  }
  /// The task to which the right was given, where that is checked.
  template <class Right>
  static const auto& receiver(const Right& r) noexcept {
    return r.receiver_;
  }
  /// Where the right keeps it.
  template <class Right>
  static void* place(const Right& r) noexcept {
    return const_cast<void*>(static_cast<const void*>(std::addressof(r.value_)));
  }
  template <class Handle>
  static void assign(Handle& h) {
    h.assign_();
  }
  template <class Handle>
  static void look(const Handle& h) noexcept {
    h.look_();
  }
  template <class Right>
  static const auto& operation(const Right& r) noexcept {
    return r.op_;
  }
  /// Where the contributions of a task go that is given this right.
  template <class Right>
  static auto* outer(const Right& r) noexcept {
    return r.outer_;
  }
  /// The part of an array that a right is on.
  template <class Right>
  static const auto& part(const Right& r) noexcept {
    return r.part_;
  }
  /// What an access tells of a part: which array, and which bytes of it.
  template <class T>
  static sched::access extent(const slice<T>& p, sched::access_mode mode) noexcept {
    const auto begin = static_cast<std::size_t>(p.data_ - p.base_) * sizeof(T);
    return {
        .object = p.base_, .mode = mode, .sliced = true, .begin = begin, .end = begin + p.size_ * sizeof(T)};
  }
  template <class T>
  static std::span<T> span(const slice<T>& p) noexcept {
    return {p.data_, p.size_};
  }
  template <class Right, class T>
  static Right make(T* value) {
    return Right(value, trusted{});
  }
  template <class T>
  static auto result(const auto& place) noexcept {
    return shared<T>(place.value, place.where, trusted{});
  }
};

template <class Held>
auto* address(const Held& h) noexcept {
  return key::address(h);
}

/// The address of an object that a task is about to be allowed to read. Contract violation if it is the
/// result of a task that failed or was dropped.
template <class T>
WEFT_ALWAYS_INLINE T* address_to_read(const shared<T>& x) noexcept {
  key::look(x);
  return key::address(x);
}

/// The address of an object that a task is about to be allowed to change; from then on the handle has a
/// value.
/// *Throws*: what T's constructor throws, for the result of a task that failed.
template <class T>
T* address_to_write(shared<T>& x) {
  key::assign(x);
  return key::address(x);
}

template <class>
inline constexpr bool never = false;

}  // namespace flow
}  // namespace weft::inline WEFT_ABI
