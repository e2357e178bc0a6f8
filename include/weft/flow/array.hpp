// SPDX-License-Identifier: BSL-1.0
// Shared arrays and rights on parts of them: tasks are ordered exactly where their parts overlap.
#pragma once

#include <weft/flow/shared.hpp>
#include <weft/flow/weak.hpp>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace weft::inline WEFT_ABI {

/// A part of a shared array, to be named by a right: `weft::write(a.slice(0, 100))`.
/// *Cost*: three words.
template <class T>
class slice {
 public:
  /// The type of the elements, as an array.
  using value_type = T;

  /// How many elements there are.
  std::size_t size() const noexcept { return size_; }
  /// A part of this part.
  /// *Throws*: std::out_of_range.
  weft::slice<T> slice_of(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first)
      throw std::out_of_range("weft: slice [" + std::to_string(first) + ", " + std::to_string(first + count) +
                              ") of " + std::to_string(size_) + " elements");
    return weft::slice<T>(base_, data_ + first, count);
  }

 private:
  friend struct flow::key;
  template <class U>
  friend class shared_array;
  template <class U, class V, flow::right_kind>
  friend class array_right;
  slice(T* base, T* data, std::size_t size) noexcept : base_(base), data_(data), size_(size) {}

  T* base_;  // of the array: identifies it
  T* data_;
  std::size_t size_;
};

/// An array that tasks reach only through rights on parts of it. Made of `n` value-initialised elements;
/// lives as weft::shared does.
/// *Cost*: an allocation.
/// *Thread safety*: as shared.
template <class T>
class shared_array {
 public:
  /// The type of the elements, as an array.
  using value_type = T;

  /// *Throws*: std::bad_alloc, what T's constructor throws.
  explicit shared_array(std::size_t n)
      : size_(n), elements_(std::make_unique<T[]>(n)), data_(elements_.get().get()) {}

  /// How many elements there are.
  std::size_t size() const noexcept { return size_; }
  /// The elements [first, first + count). Empty ones are legal.
  /// *Throws*: std::out_of_range.
  weft::slice<T> slice(std::size_t first, std::size_t count) { return all().slice_of(first, count); }
  /// All elements.
  weft::slice<T> all() noexcept { return weft::slice<T>(data_, data_, size_); }
  /// The values.
  /// *Requires*: no unfinished task may change them: outside a run, or after sync().
  std::span<const T> get() const noexcept { return {data_, size_}; }

 private:
  std::size_t size_;
  shared<std::unique_ptr<T[]>> elements_;
  T* data_;
};

/// What the rights on parts of arrays have in common.
template <class T, class Element, flow::right_kind Grade>
class array_right {
 public:
  /// The type of the elements, as an array.
  using value_type = T[];
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = Grade;

  /// How many elements there are.
  std::size_t size() const noexcept { return part_.size(); }
  /// Whether there are none.
  bool empty() const noexcept { return size() == 0; }
  /// The elements.
  std::span<Element> span() const noexcept { return {part_.data_, part_.size_}; }
  /// One element.
  /// *Requires*: `i` is less than their number.
  Element& operator[](std::size_t i) const noexcept { return part_.data_[i]; }
  /// The first one.
  Element* begin() const noexcept { return part_.data_; }
  /// Behind the last one.
  Element* end() const noexcept { return part_.data_ + part_.size_; }

 protected:
  friend struct flow::key;
  template <class U>
  friend class weft::slice;
  /// A right on a part.
  array_right(const weft::slice<T>& part) noexcept : part_(part) {}
  /// The part.
  weft::slice<T> part_;
};

/// The right to read a part of an array. As a parameter: `weft::read<T[]> v`, then `v[i]`; or
/// `std::span<const T>`.
template <class T>
class read<T[]> : public array_right<T, const T, flow::right_kind::read> {
 public:
  /// The right on a part of an array.
  read(const weft::slice<T>& part) noexcept : read::array_right(part) {}
  /// Delegates a right that includes this one.
  read(const update<T[]>& held) noexcept : read::array_right(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  read(const weak_read<T[]>& held) noexcept : read::array_right(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  read(const weak_update<T[]>& held) noexcept : read::array_right(flow::key::part(held)) {}
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  read slice(std::size_t first, std::size_t count) const { return read(this->part_.slice_of(first, count)); }
};

/// The right to give a part of an array new values. As a parameter also `std::span<T>`.
template <class T>
class write<T[]> : public array_right<T, T, flow::right_kind::write> {
 public:
  /// The right on a part of an array.
  write(const weft::slice<T>& part) noexcept : write::array_right(part) {}
  /// Delegates a right that includes this one.
  write(const update<T[]>& held) noexcept : write::array_right(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  write(const weak_write<T[]>& held) noexcept : write::array_right(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  write(const weak_update<T[]>& held) noexcept : write::array_right(flow::key::part(held)) {}
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  write slice(std::size_t first, std::size_t count) const {
    return write(this->part_.slice_of(first, count));
  }
};

/// The right to read and change a part of an array. As a parameter also `std::span<T>`.
template <class T>
class update<T[]> : public array_right<T, T, flow::right_kind::update> {
 public:
  /// The right on a part of an array.
  update(const weft::slice<T>& part) noexcept : update::array_right(part) {}
  /// Delegates a right that includes this one.
  update(const weak_update<T[]>& held) noexcept : update::array_right(flow::key::part(held)) {}
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  update slice(std::size_t first, std::size_t count) const {
    return update(this->part_.slice_of(first, count));
  }
};

/// A weak right on a part of an array: only to be delegated.
template <class T>
class weak_read<T[]> {
 public:
  /// The type of the elements, as an array.
  using value_type = T[];
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::read;
  /// The right on a part of an array.
  weak_read(const weft::slice<T>& part) noexcept : part_(part) {}
  /// Delegates a right that includes this one.
  weak_read(const read<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  weak_read(const update<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  weak_read(const weak_update<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// How many elements there are.
  std::size_t size() const noexcept { return part_.size(); }
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  weak_read slice(std::size_t first, std::size_t count) const {
    return weak_read(part_.slice_of(first, count));
  }

 private:
  friend struct flow::key;
  weft::slice<T> part_;
};

/// See weak_read.
template <class T>
class weak_write<T[]> {
 public:
  /// The type of the elements, as an array.
  using value_type = T[];
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::write;
  /// The right on a part of an array.
  weak_write(const weft::slice<T>& part) noexcept : part_(part) {}
  /// Delegates a right that includes this one.
  weak_write(const write<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  weak_write(const update<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// Delegates a right that includes this one.
  weak_write(const weak_update<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// How many elements there are.
  std::size_t size() const noexcept { return part_.size(); }
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  weak_write slice(std::size_t first, std::size_t count) const {
    return weak_write(part_.slice_of(first, count));
  }

 private:
  friend struct flow::key;
  weft::slice<T> part_;
};

/// See weak_read.
template <class T>
class weak_update<T[]> {
 public:
  /// The type of the elements, as an array.
  using value_type = T[];
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::update;
  /// The right on a part of an array.
  weak_update(const weft::slice<T>& part) noexcept : part_(part) {}
  /// Delegates a right that includes this one.
  weak_update(const update<T[]>& held) noexcept : part_(flow::key::part(held)) {}
  /// How many elements there are.
  std::size_t size() const noexcept { return part_.size(); }
  /// The same right on a part.
  /// *Throws*: std::out_of_range.
  weak_update slice(std::size_t first, std::size_t count) const {
    return weak_update(part_.slice_of(first, count));
  }

 private:
  friend struct flow::key;
  weft::slice<T> part_;
};

template <class T>
read(const slice<T>&) -> read<T[]>;
template <class T>
write(const slice<T>&) -> write<T[]>;
template <class T>
update(const slice<T>&) -> update<T[]>;
template <class T>
weak_read(const slice<T>&) -> weak_read<T[]>;
template <class T>
weak_write(const slice<T>&) -> weak_write<T[]>;
template <class T>
weak_update(const slice<T>&) -> weak_update<T[]>;

}  // namespace weft::inline WEFT_ABI
