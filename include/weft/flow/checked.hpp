// SPDX-License-Identifier: BSL-1.0
// Checked builds: the places where a body's use of an object is compared with what it has handed on.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/sched/owner.hpp>

namespace weft::flow {

using sched::access_mode;

#if WEFT_CHECKED

/// The value behind a right that the running body uses. Contract violation if it was handed on and not
/// synced.
template <class T>
T* used(T* value, access_mode use) noexcept {
  sched::strand& s = sched::current();
  if (!is_outside(s)) s.handed.check(value, use, sched::current_task_name());
  return value;
}

/// Notes that the running body gives a right on an object to a child. *Throws*: std::bad_alloc.
template <class T>
void note_handed_on(sched::strand& s, T* object, access_mode mode, const char* child) {
  if (!is_outside(s)) s.handed.note(object, mode, child);
}
/// The same for what a closure keeps of an argument. Parts of arrays and weak rights are not noted.
template <class Binding, class Kept>
void note_binding_handed_on(sched::strand& s, const Kept& kept, const char* child) {
  if constexpr (!Binding::weak) {
    if constexpr (Binding::access)
      note_handed_on(s, kept, Binding::mode, child);
    else if constexpr (Binding::more)
      Binding::tell_all(kept, 0, [&](const sched::access& a) {
        if (!a.sliced) note_handed_on(s, a.object, a.mode, child);
      });
  }
}

/// Forgets an object that ends.
inline void forget_object(sched::strand& s, const void* object) noexcept {
  if (!is_outside(s)) s.handed.forget_object(object);
}

/// The extent of a body that runs inside fork.
class checked_body {
 public:
  checked_body() noexcept : outer_(sched::current().handed.enter_body()) {}
  checked_body(const checked_body&) = delete;
  checked_body& operator=(const checked_body&) = delete;
  ~checked_body() { sched::current().handed.leave_body(outer_); }

 private:
  std::size_t outer_;
};

#else

template <class T>
WEFT_ALWAYS_INLINE T* used(T* value, access_mode) noexcept {
  return value;
}

#endif

}  // namespace weft::flow
