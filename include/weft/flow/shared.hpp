// SPDX-License-Identifier: BSL-1.0
// Objects that tasks share: shared<T> owns a value, borrow(x) names existing memory.
#pragma once

#include <weft/flow/access.hpp>
#include <weft/flow/detail/object.hpp>

#include <memory>

namespace weft::inline WEFT_ABI {

/// A handle of a value that tasks access through rights. Created in a task, the value lives until that task
/// and all its descendants have ended, even if the handle's scope ends before; created outside, as long as
/// the handle. *Requires*: a handle made in a task is destroyed by that task, or outside tasks after it; a
/// right taken from a handle is handed to a task before the handle ends (the memory is reused when nobody can
/// hold a right any more), and a right on a result before a sync() that throws: the result may be lost then,
/// and only the handle knows; T's destructor may wait, but forks no tasks. *Cost*: in a task, an addition and
/// a comparison; outside, one allocation. *Thread safety*: only the task that made the handle uses it; the
/// runtime orders accesses to the value. *Source*: Shared of Athapascan-1.
template <class T>
class shared {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "weft: shared<T> takes a plain object type");

 public:
  /// The type of the value.
  using value_type = T;

  /// An object without a value; default-initialised if T is a class type. get() before a task has set
  /// it aborts the program.
  /// *Throws*: what T's constructor throws, std::bad_alloc.
  shared()
    requires std::is_default_constructible_v<T>
      : value_(make_([](void* place) { ::new (place) T; })) {}
  /// An object with a value, constructed from `values`.
  template <class... V>
    requires(sizeof...(V) > 0 && std::is_constructible_v<T, V...>)
  explicit(sizeof...(V) > 1) shared(V&&... values)
      : value_(make_([&](void* place) { ::new (place) T(std::forward<V>(values)...); })),
        origin_(flow::origin::assigned) {}

  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;
  WEFT_ALWAYS_INLINE ~shared() {
    [[maybe_unused]] const sched::races::unseen library;
    sched::strand& s = sched::current();
#if WEFT_RACES
    sched::races::objects.forget(value_);
#endif
#if WEFT_CHECKED
    flow::forget_object(s, value_);
#endif
    if (!flow::release_last<T>(s, value_, home_)) [[unlikely]]
      flow::release<T>(s, value_, home_);
  }

  /// The value.
  /// *Requires*: it has one, and no unfinished task may change it: outside a run, or after sync().
  const T& get() const {
    if (origin_ == flow::origin::none) [[unlikely]]
      base::fail("get() of a shared object that has no value yet");
    if (!flow::exists<T>(value_, home_)) [[unlikely]]
      base::fail(
          "get() of a task's result before sync(), or of a task that was dropped or threw: there is no "
          "value");
    return *flow::used(value_, flow::access_mode::read);
  }

 private:
  friend struct flow::key;
  /// A result: no value yet, no constructor called.
  shared(T* result, flow::home home, flow::trusted) noexcept
      : home_(home), value_(result), origin_(flow::origin::task) {}

  template <class Construct>
  WEFT_ALWAYS_INLINE T* make_(Construct construct) {
    [[maybe_unused]] const sched::races::unseen library;
    const flow::place<T> p = flow::allocate<T>(sched::current());
    home_ = p.where;
    try {
      construct(p.value);
    } catch (...) {
      flow::release<T>(sched::current(), p.value, p.where);
      throw;
    }
    flow::constructed<T>(p.value);
    return p.value;
  }

  /// A task is about to be given the right to read the object.
  WEFT_ALWAYS_INLINE void look_() const noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    if (origin_ == flow::origin::task && flow::is_lost(value_)) [[unlikely]]
      flow::refuse_lost_result(value_);
  }
  /// A task is about to be given the right to change the object.
  void assign_() {
    [[maybe_unused]] const sched::races::unseen library;
    if (origin_ != flow::origin::task)
      origin_ = flow::origin::assigned;
    else if (flow::is_lost(value_)) [[unlikely]]
      flow::replace_lost_result(value_);
  }

  flow::home home_ = flow::home::task;
  T* value_;
  flow::origin origin_ = flow::origin::none;  // apart from home_, so that compilers know it at compile time
};

/// Existing memory, named as an object that tasks share.
/// *Requires*: it outlives the tasks that access it; two borrows of the same address name the same object.
/// *Cost*: none.
/// *Example*: `fork(f, weft::update(weft::borrow(x)))`.
template <class T>
class borrowed {
 public:
  /// The type of the value.
  using value_type = T;

 private:
  friend struct flow::key;
  template <class U>
  friend borrowed<U> borrow(U& x) noexcept;
  explicit borrowed(T& x) noexcept : value_(std::addressof(x)) {}
  T* value_;
};

/// Names `x` as an object that tasks share.
template <class T>
borrowed<T> borrow(T& x) noexcept {
  return borrowed<T>(x);
}

}  // namespace weft::inline WEFT_ABI
