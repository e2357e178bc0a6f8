// SPDX-License-Identifier: BSL-1.0
// Weak rights: a task that holds one may only delegate it, not use the value, and so can start at once.
#pragma once

#include <weft/flow/shared.hpp>

namespace weft::inline WEFT_ABI {

/// The right to delegate `read` of an object of type T. A task all of whose rights are weak starts at once,
/// inside fork; the tasks that it forks are ordered by the data that they touch, as if the task's parent had
/// forked them. (Where a task also has other rights, or stack is short, a weak right counts as an ordinary
/// one.)
/// *Cost*: one pointer.
/// *Source*: the postponed rights of Athapascan-1; weak dependences of OmpSs-2.
template <class T>
class weak_read {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::read;

  /// The right on an object.
  weak_read(const shared<T>& x) noexcept : value_(flow::address_to_read(x)) {}
  /// The right on borrowed memory.
  weak_read(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  weak_read(const read<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  weak_read(const update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  weak_read(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}

 private:
  friend struct flow::key;
  explicit weak_read(const T* value, flow::trusted) noexcept : value_(value) {}
  const T* value_;
};

/// The right to delegate `write`; see weak_read.
template <class T>
class weak_write {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::write;

  /// The right on an object.
  weak_write(shared<T>& x) : value_(flow::address_to_write(x)) {}
  /// The right on borrowed memory.
  weak_write(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  weak_write(const write<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  weak_write(const update<T>& held) noexcept : value_(flow::address(held)) {}
  /// Delegates a right that includes this one.
  weak_write(const weak_update<T>& held) noexcept : value_(flow::address(held)) {}

 private:
  friend struct flow::key;
  explicit weak_write(T* value, flow::trusted) noexcept : value_(value) {}
  T* value_;
};

/// The right to delegate `update`, `read`, `write`, `reduce` and `commute`; see weak_read.
template <class T>
class weak_update {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::update;

  /// The right on an object.
  weak_update(shared<T>& x) : value_(flow::address_to_write(x)) {}
  /// The right on borrowed memory.
  weak_update(const borrowed<T>& x) noexcept : value_(flow::address(x)) {}
  /// Delegates a right that includes this one.
  weak_update(const update<T>& held) noexcept : value_(flow::address(held)) {}

 private:
  friend struct flow::key;
  explicit weak_update(T* value, flow::trusted) noexcept : value_(value) {}
  T* value_;
};

/// The right to delegate `reduce` with the same operation; see weak_read.
template <class T, class Op>
class weak_reduce {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::reduce;

  /// The right on an object.
  weak_reduce(shared<T>& x, Op op) : value_(flow::address_to_write(x)), op_(std::move(op)) {}
  /// The right on borrowed memory.
  weak_reduce(const borrowed<T>& x, Op op) noexcept : value_(flow::address(x)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  weak_reduce(const update<T>& held, Op op) noexcept : value_(flow::address(held)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  weak_reduce(const weak_update<T>& held, Op op) noexcept : value_(flow::address(held)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  weak_reduce(const reduce<T, Op>& held)
      : value_(flow::address(held)), op_(flow::key::operation(held)), outer_(flow::key::outer(held)) {}

 private:
  friend struct flow::key;
  T* value_;
  [[no_unique_address]] Op op_;
  flow::contribution<T, Op>* outer_ = nullptr;  // see reduce
};

}  // namespace weft::inline WEFT_ABI
