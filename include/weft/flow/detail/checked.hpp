// SPDX-License-Identifier: BSL-1.0
// Checked builds: the places where a body's use of an object is compared with what it has delegated.
#pragma once

#include <weft/flow/definitions.hpp>
#include <weft/flow/fwd.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/sync.hpp>

#include <vector>

namespace weft::inline WEFT_ABI::flow {

using sched::access_mode;

/// Tells `see` the accesses that an argument gives a task.
template <class Adaptor, class Kept, class See>
void tell_rights(const Kept& kept, See&& see) {
  if constexpr (Adaptor::access)
    see(sched::access{.object = kept, .mode = Adaptor::mode});
  else if constexpr (Adaptor::more)
    Adaptor::tell_all(kept, 0, see);
}

#if WEFT_CHECKED

/// The value behind a right that the running body uses. Contract violation if it was delegated and not
/// synced.
template <class T>
T* used(T* value, access_mode use) noexcept {
  sched::strand& s = sched::current();
  [[maybe_unused]] const sched::races::unseen library;
  if (!is_outside(s)) s.delegated.check(value, use, sched::current_task_name());
  return value;
}

/// The same for a right that was given to a task. Contract violation if that has ended, too.
template <class T>
T* used(T* value, access_mode use, const sched::life_of_task& given) noexcept {
  if (given.over()) [[unlikely]] {
    const sched::strand& s = sched::current();
    const char* const user = is_outside(s) ? nullptr : sched::current_task_name();
    base::fail(
        "a right that was given to task '%s' is used%s%s%s after that has ended; rights must not be kept",
        given.name != nullptr ? given.name : "task", user != nullptr ? " in task '" : "",
        user != nullptr ? user : "", user != nullptr ? "'" : "");
  }
  return used(value, use);
}
/// What a right remembers of the task to which it is being given.
using receiver = sched::life_of_task;
inline receiver receiving_task() noexcept {
  const sched::strand& s = sched::current();
  return is_outside(s) ? receiver{} : s.lives.current(sched::current_task_name());
}

/// Notes that the running body gives a right on an object to a child. `mark`: of a result. *Throws*:
/// std::bad_alloc.
template <class T>
void note_delegated(sched::strand& s, T* object, access_mode mode, const char* child, const void* forked_at,
                    const base::atomic<sched::presence>* mark = nullptr) {
  if (!is_outside(s)) s.delegated.note(object, mode, child, forked_at, mark);
}
/// The same for what a closure keeps of an argument. Parts of arrays and weak rights are not noted.
template <class Adaptor, class Kept>
void note_rights_delegated(sched::strand& s, const Kept& kept, const char* child, const void* forked_at) {
  if constexpr (!Adaptor::weak) {
    if constexpr (Adaptor::access)
      note_delegated(s, kept, Adaptor::mode, child, forked_at);
    else if constexpr (Adaptor::more)
      Adaptor::tell_all(kept, 0, [&](const sched::access& a) {
        if (!a.sliced) note_delegated(s, a.object, a.mode, child, forked_at);
      });
  }
}

/// What one fork delegates; taken back where fork throws, so that there is no child.
class delegation {
 public:
  explicit delegation(sched::strand& s) noexcept : s_(s), mark_(s.delegated.mark()) {}
  delegation(const delegation&) = delete;
  delegation& operator=(const delegation&) = delete;
  ~delegation() {
    if (!made_ && !is_outside(s_)) s_.delegated.take_back(mark_);
  }
  /// There is a child now, or has been one.
  void made() noexcept { made_ = true; }

 private:
  sched::strand& s_;
  std::size_t mark_;
  bool made_ = false;
};

/// Stops the program if two of the accesses contradict each other.
void check_accesses(std::vector<sched::access>& all, const char* task);

/// Stops the program if two rights of a new task contradict each other. *Throws*: std::bad_alloc.
template <class... Adaptors, class... Kept>
void check_rights(const char* task, const Kept&... kept) {
  std::size_t rights = 0, special = 0;
  (tell_rights<Adaptors>(kept,
                         [&](const sched::access& a) {
                           ++rights;
                           special += a.mode == access_mode::write || a.mode == access_mode::reduce;
                         }),
   ...);
  if (rights < 2 || special == 0) return;
  std::vector<sched::access> all;
  all.reserve(rights);
  (tell_rights<Adaptors>(kept, [&](const sched::access& a) { all.push_back(a); }), ...);
  check_accesses(all, task);
}

/// Stops the program if a new task is given a right on a lost result that was taken before the loss was
/// known: the handle, which is looked at when the right is taken, could not tell.
template <class... Adaptors, class... Kept>
void check_results([[maybe_unused]] const char* task, const Kept&... kept) noexcept {
  const sched::strand& s = sched::current();
  if (is_outside(s) || !s.delegated.any_lost() || drops_forks(s)) return;
  (tell_rights<Adaptors>(kept, [&](const sched::access& a) { s.delegated.check_present(a.object, task); }),
   ...);
}

/// Forgets an object that ends.
inline void forget_object(sched::strand& s, const void* object) noexcept {
  if (!is_outside(s)) s.delegated.forget_object(object);
}

/// The extent of a body that runs inside fork.
class checked_body {
 public:
  checked_body() noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    outer_ = sched::current().delegated.enter_body();
    sched::current().lives.begin_body();
  }
  checked_body(const checked_body&) = delete;
  checked_body& operator=(const checked_body&) = delete;
  ~checked_body() {
    [[maybe_unused]] const sched::races::unseen library;
    sched::strand& s = sched::current();
    s.lives.end_body(s.pending() ? s.top : nullptr);
    s.delegated.leave_body(outer_);
  }

 private:
  sched::delegated_rights::body outer_;
};

#else

template <class T>
WEFT_ALWAYS_INLINE T* used(T* value, access_mode) noexcept {
  return value;
}
struct receiver {};
template <class T>
WEFT_ALWAYS_INLINE T* used(T* value, access_mode, receiver) noexcept {
  return value;
}
WEFT_ALWAYS_INLINE constexpr receiver receiving_task() noexcept { return {}; }

#endif

}  // namespace weft::inline WEFT_ABI::flow
