// SPDX-License-Identifier: BSL-1.0
// Where shared objects live: on the object arena of the strand in a task, on the heap outside.
#pragma once

#include <weft/flow/fwd.hpp>
#include <weft/sched/current.hpp>

#include <memory>
#include <new>

namespace weft::flow {

/// Who owns an object's memory.
enum class home : unsigned char { task, heap, result };

/// A task's result in front of the mark that it has been produced. Types with a destructor have their own
/// mark.
template <class R>
struct marked {
  alignas(R) std::byte value[sizeof(R)];
  base::atomic<bool> produced;

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
    ::new (&b->note) sched::cleanup{heap ? nullptr : s.cleanups, &box::destroy, false};
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
    // Relaxed, as all uses of the mark: results are read after sync, which orders them; the mark reveals who
    // forgot it.
    std::construct_at(&p.value->produced)->store(false, base::memory_order_relaxed);
    return {reinterpret_cast<R*>(p.value), home::result};  // outside tasks, fork stops the program anyway
  } else {
    return {allocate<R>(s).value, home::result};
  }
}

/// Notes that a result has been produced.
template <class R>
WEFT_ALWAYS_INLINE void produced(R* value) noexcept {
  if constexpr (plain<R>)
    marked<R>::of(value).produced.store(true, base::memory_order_relaxed);  // see allocate_result
  else
    tracked<R>::of(value).note.constructed = true;
}

/// Whether an object has been constructed.
template <class T>
WEFT_ALWAYS_INLINE bool exists(T* value, home where) noexcept {
  if constexpr (plain<T>)
    return where != home::result ||
           marked<T>::of(value).produced.load(base::memory_order_relaxed);  // see allocate_result
  else
    return tracked<T>::of(value).note.constructed;
}

/// Gives a value to the result of a task that failed or was dropped, so that later tasks can assign to it.
/// Does nothing while the task may still produce it. *Throws*: what R's constructor throws.
template <class R>
WEFT_COLD void replace_lost_result(R* value) {
  if (exists(value, home::result) || may_be_accessed(sched::current(), value)) return;
  if constexpr (std::is_default_constructible_v<R>) {
    ::new (static_cast<void*>(value)) R();
    produced(value);
  } else {
    base::fail(
        "a right to change the result of a task that failed, and there is no default value to begin with");
  }
}

/// Notes that the object has been constructed, so that its destructor will be called.
template <class T>
WEFT_ALWAYS_INLINE void constructed(T* value) noexcept {
  if constexpr (!plain<T>) tracked<T>::of(value).note.constructed = true;
}

/// Where the memory of a plain object ends.
template <class T>
WEFT_ALWAYS_INLINE std::byte* end_of(T* value, home where) noexcept {
  return reinterpret_cast<std::byte*>(value) + (where == home::result ? rounded<marked<T>> : rounded<T>);
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

/// Ends a handle whose object is not simply the last one.
template <class T>
WEFT_NOINLINE void release(sched::strand& s, T* value, home where) noexcept {
  if (where == home::heap) [[unlikely]] {
    if constexpr (plain<T>) {
      ::operator delete(value, std::align_val_t(alignof(T)));
    } else {
      using box = tracked<T>;
      box& b = box::of(value);
      if (b.note.constructed) box::destroy(b.note);
      ::operator delete(&b, std::align_val_t(alignof(box)));
    }
    return;
  }
  if (s.pending() || is_outside(s)) return;  // the task's end releases it
  if constexpr (plain<T>) {
    if (s.objects.top() == end_of(value, where))
      s.objects.release_to(value);
    else
      s.leave_garbage();
  } else {
    using box = tracked<T>;
    box& b = box::of(value);
    if (s.cleanups == &b.note) {
      s.cleanups = b.note.below;
      if (b.note.constructed) box::destroy(b.note);
      if (s.objects.top() == reinterpret_cast<std::byte*>(&b) + rounded<box>) {
        s.objects.release_to(&b);
        return;
      }
    }
    s.leave_garbage();
  }
}

}  // namespace weft::flow
