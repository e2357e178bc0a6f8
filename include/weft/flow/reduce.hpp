// SPDX-License-Identifier: BSL-1.0
// The right to contribute to an object: contributions are made in parallel and folded in reference order.
#pragma once

#include <weft/flow/shared.hpp>
#include <weft/flow/weak.hpp>

#include <optional>

namespace weft::inline WEFT_ABI {
namespace flow {

/// What a closure keeps of a contribution: the object and, if the task does not run at its turn, what it
/// contributes, until it is folded.
template <class T, class Op>
struct contribution {
  T* object;
  [[no_unique_address]] Op op;
  /// Where this goes instead of the object: to the contribution of a task around this one that does not run
  /// at its turn. It outlives all tasks below its own.
  contribution* outer = nullptr;
  bool privatized = false;
  std::optional<T> part{};

  /// Where a task goes to whom this is delegated.
  contribution* next_outer() noexcept { return privatized ? this : outer; }
  template <class V>
  void add(V&& v) {
    [[maybe_unused]] const sched::races::unseen
        library;  // contributors race for the object only where all run at once
    if (!privatized && outer != nullptr)
      outer->add(std::forward<V>(v));
    else if (!privatized)
      *object = op(std::move(*object), T(std::forward<V>(v)));
    else if (part)
      *part = op(*std::move(part), T(std::forward<V>(v)));
    else
      part.emplace(std::forward<V>(v));
  }
  /// Folds what was kept apart to where it goes.
  void fold() {
    if (part && outer != nullptr)
      outer->add(*std::move(part));
    else if (part)
      *object = op(std::move(*object), *std::move(part));
  }
  /// Tells operations apart: only contributions with the same one run at the same time.
  const void* operation() const noexcept {
    static constexpr char same = 0;
    if constexpr (std::is_empty_v<Op>)
      return &same;
    else if constexpr (std::is_pointer_v<Op>)
      return reinterpret_cast<const void*>(op);
    else
      return this;  // who knows
  }
};

}  // namespace flow

/// The right to contribute to an object of type T: `t += v` in the body has the effect of `object =
/// op(object, T(v))`. Contributions are folded in the reference order of the tasks, so `op` has to be
/// associative, not commutative.
/// *Requires*: T can be moved, and made of what is contributed. As an argument: `weft::reduce(x,
/// std::plus<>{})`. As a parameter: `auto t` or `weft::reduce<T, Op> t`.
/// *Cost*: where a task runs at its turn, that of `op`; otherwise one more `op` for the task.
/// *Source*: cumulative writes of Athapascan-1; reducers of Cilk++.
template <class T, class Op>
class reduce {
 public:
  /// The type of the value.
  using value_type = T;
  /// Which right it is; fork asks for it.
  static constexpr flow::right_kind right_kind = flow::right_kind::reduce;

  /// The right on an object.
  reduce(shared<T>& x, Op op) : value_(flow::address_to_write(x)), op_(std::move(op)) {}
  /// The right on memory of the program's own.
  reduce(const borrowed<T>& x, Op op) : value_(flow::address(x)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  reduce(const update<T>& held, Op op) : value_(flow::address(held)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  reduce(const weak_update<T>& held, Op op) : value_(flow::address(held)), op_(std::move(op)) {}
  /// Delegates a right that includes this one.
  reduce(const weak_reduce<T, Op>& held)
      : value_(flow::address(held)), op_(flow::key::operation(held)), outer_(flow::key::outer(held)) {}

  /// Contributes `v`.
  /// *Throws*: what `op` and T's constructor throw.
  template <class V>
  const reduce& operator+=(V&& v) const {
    if (into_ == nullptr) base::fail("a right to contribute was used where it was named; hand it to a task");
    flow::used(value_, flow::access_mode::reduce);
    into_->add(std::forward<V>(v));
    return *this;
  }

 private:
  friend struct flow::key;
  explicit reduce(flow::contribution<T, Op>* into, flow::trusted)
      : value_(into->object), op_(into->op), into_(into), outer_(into->next_outer()) {}
  T* value_;
  [[no_unique_address]] Op op_;
  flow::contribution<T, Op>* into_ = nullptr;   // of the task that has this as a parameter
  flow::contribution<T, Op>* outer_ = nullptr;  // of the contributions of whoever gets this
};

template <class T, class Op>
reduce(const weak_reduce<T, Op>&) -> reduce<T, Op>;

}  // namespace weft::inline WEFT_ABI
