// SPDX-License-Identifier: BSL-1.0
// Where shared objects live: on the object arena of the strand in a task, on the heap outside.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/sched/definitions.hpp>
#include <weft/sched/sync.hpp>

#include <memory>
#include <new>

namespace weft::inline WEFT_ABI::flow {

/// Who owns an object's memory.
enum class home : unsigned char { task, heap, result };

/// Where the value of an object comes from: from nowhere yet, from who made the handle or named the object
/// for a change, or from the task whose result it is.
enum class origin : unsigned char { none, assigned, task };

using sched::presence;

/// A task's result in front of the mark of its presence. Types with a destructor have their own mark.
template <class R>
struct marked {
  alignas(R) std::byte value[sizeof(R)];
  base::atomic<presence> state;

  static marked& of(R* value) noexcept { return *reinterpret_cast<marked*>(value); }
};

/// An object whose destructor matters: known to its task's cleanups.
template <class T>
struct tracked {
  sched::cleanup note;
  alignas(T) std::byte value[sizeof(T)];

  static tracked& of(T* value) noexcept {
    return *reinterpret_cast<tracked*>(reinterpret_cast<std::byte*>(value) - offset());
  }
  static constexpr std::size_t offset() noexcept {
    return (sizeof(sched::cleanup) + alignof(T) - 1) / alignof(T) * alignof(T);
  }
  static void destroy(sched::cleanup& c) noexcept {
    std::destroy_at(std::launder(reinterpret_cast<T*>(reinterpret_cast<tracked&>(c).value)));
  }
};

/// Whether T's destructor does nothing, so that memory is all there is to release.
template <class T>
inline constexpr bool plain = std::is_trivially_destructible_v<T>;

/// Bytes that a plain object takes in the arena.
template <class T>
inline constexpr std::size_t rounded =
    (sizeof(T) + sched::arena::grain - 1) / sched::arena::grain * sched::arena::grain;

template <class T>
struct place {
  T* value;
  home where;
};

/// Memory for an object, from the heap outside tasks and from a fresh block where the current one is full.
template <class T>
WEFT_NOINLINE place<T> allocate_elsewhere(sched::strand& s) {
  if constexpr (plain<T>) {
    if (is_outside(s))
      return {static_cast<T*>(::operator new(sizeof(T), std::align_val_t(alignof(T)))), home::heap};
    return {static_cast<T*>(s.objects.allocate(sizeof(T), alignof(T))), home::task};
  } else {
    using box = tracked<T>;
    const bool heap = is_outside(s);
    void* memory = heap ? ::operator new(sizeof(box), std::align_val_t(alignof(box)))
                        : s.objects.allocate(sizeof(box), alignof(box));
    auto* b = static_cast<box*>(memory);
    ::new (&b->note) sched::cleanup{heap ? nullptr : s.cleanups, &box::destroy, presence::absent};
    if (!heap) s.cleanups = &b->note;
    return {reinterpret_cast<T*>(b->value), heap ? home::heap : home::task};
  }
}

/// Memory for an object of the running task; not constructed.
template <class T>
WEFT_ALWAYS_INLINE place<T> allocate(sched::strand& s) {
  if constexpr (plain<T>) {
    if (s.objects.fits(sizeof(T), alignof(T))) [[likely]]
      return {static_cast<T*>(s.objects.allocate_here(sizeof(T), alignof(T))), home::task};
  }
  return allocate_elsewhere<T>(s);
}

/// Memory for a task's result, not produced yet.
template <class R>
WEFT_ALWAYS_INLINE place<R> allocate_result(sched::strand& s) {
  if constexpr (plain<R>) {
    const place<marked<R>> p = allocate<marked<R>>(s);
    // Relaxed: the mark is published with the task that is to change it.
    std::construct_at(&p.value->state)->store(presence::absent, base::memory_order_relaxed);
    return {reinterpret_cast<R*>(p.value), home::result};  // outside tasks, fork stops the program anyway
  } else {
    return {allocate<R>(s).value, home::result};
  }
}

/// The mark of an object's presence. *Requires*: it is a task's result, or has a destructor.
template <class T>
WEFT_ALWAYS_INLINE base::atomic<presence>& presence_of(T* value) noexcept {
  if constexpr (plain<T>)
    return marked<T>::of(value).state;
  else
    return tracked<T>::of(value).note.state;
}

/// Notes that a result has been produced, or never will be.
template <class R>
WEFT_ALWAYS_INLINE void mark_result(R* value, presence p) noexcept {
  // Relaxed: results are read after sync, which orders them; the mark reveals who forgot it.
  presence_of(value).store(p, base::memory_order_relaxed);
}

/// Notes that the object has been constructed, so that its destructor will be called.
template <class T>
WEFT_ALWAYS_INLINE void constructed(T* value) noexcept {
  if constexpr (!plain<T>) mark_result(value, presence::present);
}

/// Whether an object has been constructed.
template <class T>
WEFT_ALWAYS_INLINE bool exists(T* value, home where) noexcept {
  if constexpr (plain<T>)
    if (where != home::result) return true;
  return presence_of(value).load(base::memory_order_relaxed) == presence::present;  // see mark_result
}

/// Whether the task that was to produce the result has failed or was dropped, as far as known here.
template <class R>
WEFT_ALWAYS_INLINE bool is_lost(R* value) noexcept {
  // Relaxed: only a loss before the last sync counts, which orders it.
  return presence_of(value).load(base::memory_order_relaxed) == presence::lost;
}

/// Whether a task that is forked now would meet a lost result. It would not where it is dropped as well:
/// where the task that failed belongs to the children not waited for yet, behind an exception, and in a
/// stopped run.
WEFT_COLD inline bool would_meet_loss(const void* result) noexcept {
  const sched::strand& s = sched::current();
  return !drops_forks(s) && !may_be_accessed(s, result);
}

/// The running task delegates a right to `use` a lost result.
[[noreturn]] WEFT_COLD inline void fail_lost(const char* use, const char* missing) noexcept {
  const char* const name = sched::current_task_name();
  base::fail(
      "task '%s' delegates the right to %s the result of a task that failed or was dropped: there is no %s",
      name != nullptr ? name : "task", use, missing);
}

/// Stops the program if a task is to read a lost result: in the serial program there is nothing to read.
WEFT_COLD inline void refuse_lost_result(const void* result) noexcept {
  if (would_meet_loss(result)) fail_lost("read", "value");
}

/// Gives a lost result a value where one is needed, so that later tasks can assign to it. *Throws*: what R's
/// constructor throws.
template <class R>
WEFT_COLD void replace_lost_result(R* value) {
  if (!would_meet_loss(value)) return;
  if constexpr (std::is_default_constructible_v<R>) {
    ::new (static_cast<void*>(value)) R();
    mark_result(value, presence::present);
  } else {
    fail_lost("change", "value, and no default to begin with");
  }
}

/// Where the memory of an object ends.
template <class T>
WEFT_ALWAYS_INLINE std::byte* end_of(T* value, home where) noexcept {
  if constexpr (plain<T>)
    return reinterpret_cast<std::byte*>(value) + (where == home::result ? rounded<marked<T>> : rounded<T>);
  else
    return reinterpret_cast<std::byte*>(&tracked<T>::of(value)) + rounded<tracked<T>>;
}

/// Releases the object at once if it is the last one and no task can still use it. *Returns*: whether it was.
template <class T>
WEFT_ALWAYS_INLINE bool release_last(sched::strand& s, T* value, home where) noexcept {
  if constexpr (plain<T>) {
    if (where == home::heap || s.limit == sched::no_inlining || s.objects.top() != end_of(value, where))
      return false;
    s.objects.release_to(value);
    return true;
  } else {
    return false;
  }
}

/// Tells the recorder of the run that an object ends; an array is known by its first element.
template <class T>
WEFT_COLD void record_end(sched::strand& s, T* value, home where) noexcept {
  sched::end_recorded_object(s, value);
  if constexpr (requires {
                  static_cast<const void*>(value->get());
                  value->get_deleter();
                })
    if (exists(value, where)) sched::end_recorded_object(s, value->get());
}

/// Ends a handle off the short ways.
template <class T>
WEFT_COLD void release_out_of_order(sched::strand& s, T* value, home where) noexcept {
  if (where == home::heap) {
    if constexpr (plain<T>) {
      ::operator delete(value, std::align_val_t(alignof(T)));
    } else {
      using box = tracked<T>;
      box& b = box::of(value);
      b.note.run();
      ::operator delete(&b, std::align_val_t(alignof(box)));
    }
    return;
  }
  if (is_outside(s)) return;  // it was released with its task
  const bool pending = s.pending(), last = !pending && s.objects.top() == end_of(value, where);
  if constexpr (plain<T>) {
    if (last)
      s.objects.release_to(value);
    else
      s.left.note(reinterpret_cast<std::byte*>(value), end_of(value, where));
  } else {
    sched::cleanup& note = tracked<T>::of(value).note;
    if (!pending && s.recorder != nullptr) [[unlikely]]
      record_end(s, value, where);
    if (!pending) note.run();
    if (last && s.cleanups == &note) {
      s.cleanups = note.below;
      s.objects.release_to(&note);
    } else {
      s.left.note(note, pending ? sched::handle::waiting : sched::handle::ended, end_of(value, where));
    }
  }
  if (!pending && s.left.any()) s.release_deferred();
}

/// Ends a handle whose object is not simply the last one.
template <class T>
WEFT_NOINLINE void release(sched::strand& s, T* value, home where) noexcept {
  if constexpr (plain<T>) {
    if (s.pending()) {
      if (where != home::heap && s.left.try_note(reinterpret_cast<std::byte*>(value), end_of(value, where)))
        return;
    } else if (s.recorder != nullptr && where != home::heap) [[unlikely]] {
      return sched::release_recorded(s, reinterpret_cast<std::byte*>(value), end_of(value, where));
    }
  }
  release_out_of_order(s, value, where);
}

}  // namespace weft::inline WEFT_ABI::flow
