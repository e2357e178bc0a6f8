// SPDX-License-Identifier: BSL-1.0
// The rights read, write and update: named at the call of fork, or declared as a task's parameters.
#pragma once

#include <weft/flow/detail/checked.hpp>
#include <weft/flow/detail/right_kind.hpp>

#include <utility>

namespace weft::inline WEFT_ABI {

/// The right to read an object of type T. A task that holds it sees the value of the serial program. As an
/// argument: `weft::read(x)` for an x that is shared, borrowed, or a right that includes reading. As a
/// parameter: `weft::read<T> v`, then `*v` is the value. *Cost*: one pointer. *Thread safety*: that of a
/// value; the runtime orders accesses to the object. *Source*: Shared_r of Athapascan-1.
template <class T>
class read {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::read;

  /// *Effects*: names the right to read `x`.
  read(const shared<T>& x) noexcept : value_(flow::address_to_read(x)) {}
  /// The right on borrowed memory.
  read(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// The right on borrowed memory.
  read(const borrowed<const T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  read(const update<T>& held) noexcept : value_(flow::address(held)), receiver_(flow::key::receiver(held)) {}
  /// Delegates a right that includes this one.
  read(const weak_read<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  read(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Does not compile: the right held does not include this one.
  template <class Held>
    requires std::is_same_v<Held, write<T>>
  read(const Held&) {
    static_assert(flow::never<Held>,
                  "weft: a task that holds 'write' on an object cannot see its old value, so it cannot "
                  "delegate 'read'; "
                  "it may delegate 'write' only");
  }

  /// The value.
  /// *Requires*: the running task holds this right.
  const T& operator*() const noexcept { return *flow::used(value_, flow::access_mode::read, receiver_); }
  /// A member of the value.
  const T* operator->() const noexcept { return flow::used(value_, flow::access_mode::read, receiver_); }
  /// The value.
  const T& get() const noexcept { return **this; }

 private:
  friend struct flow::key;
  explicit read(const T* value, flow::trusted) noexcept : value_(value), receiver_(flow::receiving_task()) {}
  const T* value_;
  [[no_unique_address]] flow::receiver receiver_;
};

/// The right to give an object of type T a new value; the old one is not visible. As a parameter:
/// `weft::write<T> v`, then `v = value` sets it. A body with a plain `T&` assigns to that. What it finds
/// there is unspecified: where tasks still use the old value, an object that was named by its shared<T>
/// handle may be *renamed*, so that the body gets a fresh T or a used one (T must be default constructible
/// and move assignable without exceptions; see runtime_options::versions). `Own`: named so.
/// *Cost*: one pointer.
/// *Source*: Shared_w of Athapascan-1.
template <class T, bool Own>
class write {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::write;

  /// The right on an object.
  write(shared<T>& x) : value_(flow::address_to_write(x)) {}
  /// The right on borrowed memory.
  write(const borrowed<T>& x) noexcept
    requires(!Own)
      : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  write(const update<T>& held) noexcept
    requires(!Own)
      : value_(flow::address(held)), receiver_(flow::key::receiver(held)) {}
  /// Delegates a right that includes this one.
  write(const weak_write<T>& held) noexcept
    requires(!Own)
      : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  write(const write<T, true>& own) noexcept
    requires(!Own)
      : value_(flow::address(own)) {}
  /// Delegates a right that includes this one.
  write(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Does not compile: the right held does not include this one.
  template <class Held>
    requires std::is_same_v<Held, read<T>>
  write(const Held&) {
    static_assert(flow::never<Held>,
                  "weft: a task that holds 'read' on an object may delegate 'read' only, not 'write'");
  }

  /// Sets the value.
  template <class V>
  const write& operator=(V&& value) const {
    *flow::used(value_, flow::access_mode::update, receiver_) = std::forward<V>(value);
    return *this;
  }
  /// Copies the right.
  write(const write&) noexcept = default;
  write& operator=(const write&) = delete;  // would rename the object, which nobody means

  /// The place of the new value.
  T& operator*() const noexcept { return *flow::used(value_, flow::access_mode::update, receiver_); }
  /// A member of the value.
  T* operator->() const noexcept { return flow::used(value_, flow::access_mode::update, receiver_); }
  /// The value.
  T& get() const noexcept { return **this; }

 private:
  friend struct flow::key;
  explicit write(T* value, flow::trusted) noexcept : value_(value), receiver_(flow::receiving_task()) {}
  T* value_;
  [[no_unique_address]] flow::receiver receiver_;
};

/// The right to read and change an object of type T. As a parameter: `weft::update<T> v`, then `*v` is the
/// value.
/// *Cost*: one pointer.
/// *Source*: Shared_r_w of Athapascan-1.
template <class T>
class update {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::update;

  /// The right on an object.
  update(shared<T>& x) : value_(flow::address_to_write(x)) {}
  /// The right on borrowed memory.
  update(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  update(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Does not compile: the right held does not include this one.
  template <class Held>
    requires std::is_same_v<Held, read<T>>
  update(const Held&) {
    static_assert(flow::never<Held>,
                  "weft: a task that holds 'read' on an object may delegate 'read' only, not 'update'");
  }
  /// Does not compile: the right held does not include this one.
  template <class Held>
    requires(std::is_same_v<Held, write<T>> && !std::is_same_v<Held, read<T>>)
  update(const Held&) {
    static_assert(flow::never<Held>,
                  "weft: a task that holds 'write' on an object cannot see its old value, so it cannot "
                  "delegate 'update'; "
                  "it may delegate 'write' only");
  }

  /// Sets the value.
  template <class V>
  const update& operator=(V&& value) const {
    *flow::used(value_, flow::access_mode::update, receiver_) = std::forward<V>(value);
    return *this;
  }
  /// Copies the right.
  update(const update&) noexcept = default;
  update& operator=(const update&) = delete;

  /// The value.
  /// *Requires*: the running task holds this right.
  T& operator*() const noexcept {
    return *flow::used(value_, flow::access_mode::read, receiver_);
  }  // maybe only read: no false alarm
  /// A member of the value.
  T* operator->() const noexcept { return flow::used(value_, flow::access_mode::read, receiver_); }
  /// The value.
  T& get() const noexcept { return **this; }

 private:
  friend struct flow::key;
  explicit update(T* value, flow::trusted) noexcept : value_(value), receiver_(flow::receiving_task()) {}
  T* value_;
  [[no_unique_address]] flow::receiver receiver_;
};

/// The right to change an object of type T exclusively, in any order among the tasks that commute. As a
/// parameter: `weft::commute<T> v`, then `*v` is the value; or a plain `T&`. It cannot be delegated.
/// *Cost*: one pointer. Tasks run out of order only in frames that a thief has promoted.
/// *Source*: commute of StarPU.
template <class T>
class commute {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::commute;

  /// The right on an object.
  commute(shared<T>& x) : value_(flow::address_to_write(x)) {}
  /// The right on borrowed memory.
  commute(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  commute(const update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  commute(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}

  /// The value.
  /// *Requires*: the running task holds this right.
  T& operator*() const noexcept { return *flow::used(value_, flow::access_mode::read); }
  /// A member of the value.
  T* operator->() const noexcept { return flow::used(value_, flow::access_mode::read); }
  /// The value.
  T& get() const noexcept { return **this; }

 private:
  friend struct flow::key;
  explicit commute(T* value, flow::trusted) noexcept : value_(value) {}
  T* value_;
};

template <class T>
write(shared<T>&) -> write<T, true>;

// So that a forbidden narrowing reaches its sentence.
template <class T>
read(const write<T>&) -> read<T>;
template <class T>
write(const read<T>&) -> write<T>;
template <class T>
update(const read<T>&) -> update<T>;
template <class T>
update(const write<T>&) -> update<T>;

}  // namespace weft::inline WEFT_ABI
