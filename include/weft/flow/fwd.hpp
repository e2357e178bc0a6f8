// SPDX-License-Identifier: BSL-1.0
// Forward declarations of the room, and the key by which its parts reach an object's address.
#pragma once

#include <weft/base/config.hpp>

#include <type_traits>

namespace weft {

template <class T>
class shared;
template <class T>
class borrowed;
template <class T>
class read;
template <class T>
class write;
template <class T>
class update;

namespace flow {

/// Marks constructors that only this room may call.
struct trusted {};

/// Opens the handles and rights for this room.
struct key {
  template <class Right>
  static auto* address(const Right& r) noexcept {
    return r.value_;
  }
  template <class Handle>
  static void assign(Handle& h) {
    h.assign_();
  }
  template <class Right, class T>
  static Right make(T* value) noexcept {
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

/// The address of an object that a task is about to be allowed to change; from then on the handle has a
/// value. *Throws*: what T's constructor throws, for the result of a task that failed.
template <class T>
T* address_to_write(shared<T>& x) {
  key::assign(x);
  return key::address(x);
}

template <class>
inline constexpr bool never = false;

}  // namespace flow
}  // namespace weft
