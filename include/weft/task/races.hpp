// SPDX-License-Identifier: BSL-1.0
// Races between tasks as Thread Sanitizer sees them when only the declared accesses order anything: every
// task is a thread of its own to it, and runs at once, whatever the number of workers.
#pragma once

#include <weft/base/config.hpp>

#if WEFT_RACES

#include <weft/context/fiber.hpp>
#include <weft/context/race_hooks.hpp>
#include <weft/task/closure.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace weft::inline WEFT_ABI::sched::races {

/// Hides the library's own accesses and its own synchronisation, which users must not rely on.
class unseen {
 public:
  unseen() noexcept { context::races::hide(); }
  unseen(const unseen&) = delete;
  unseen& operator=(const unseen&) = delete;
  ~unseen() { context::races::show(); }
};

/// Something that is released by those who come before, and acquired by those who come after.
using token = std::shared_ptr<char>;
inline token make_token() { return std::make_shared<char>(); }

/// One task: what its sync waits for, and who waits for it.
struct task {
  std::shared_ptr<task> parent;
  token below = make_token();  ///< released by all tasks below it
};

/// What the tasks before have done with each object. *Thread safety*: any.
class history {
 public:
  /// *Returns*: the tokens of those whom a task with these accesses waits for.
  std::vector<token> before(const std::vector<access>& accesses) {
    const std::lock_guard hold(mutex_);
    std::vector<token> all;
    for (const access& a : accesses)
      for (const use& u : uses_[a.object])
        if (meet(u.what, a) && !together(u.what, a)) all.push_back(u.end);
    return all;
  }
  /// Notes that a task with these accesses has ended, which has waited for `before` (and not for its
  /// children).
  void add(const std::vector<access>& accesses, const token& end, const std::vector<token>& before) {
    const std::lock_guard hold(mutex_);
    for (const access& a : accesses) {
      std::vector<use>& uses = uses_[a.object];
      // Whoever waits for this one waits for those that it has waited for.
      if (a.mode != access_mode::read && a.mode != access_mode::reduce)
        std::erase_if(uses, [&](const use& u) {
          return covers(a, u.what) && std::ranges::find(before, u.end) != before.end();
        });
      uses.push_back({a, end});
    }
  }
  /// Forgets an object whose memory may become another's.
  void forget(const void* object) {
    const std::lock_guard hold(mutex_);
    uses_.erase(object);
  }

 private:
  struct use {
    access what;
    token end;
  };
  static bool meet(const access& a, const access& b) noexcept {
    return !a.sliced || !b.sliced || (a.begin < b.end && b.begin < a.end);
  }
  static bool covers(const access& a, const access& b) noexcept {
    return !a.sliced || (b.sliced && a.begin <= b.begin && b.end <= a.end);
  }
  static bool together(const access& a, const access& b) noexcept {
    return !conflict(a.mode, b.mode) ||
           (a.mode == access_mode::reduce && b.mode == access_mode::reduce && a.operation == b.operation);
  }

  std::mutex mutex_;
  std::unordered_map<const void*, std::vector<use>> uses_;
};
WEFT_PER_PROCESS inline history objects;

/// The turn of a task: what the two sides of the switch to its stack need of each other.
struct turn {
  void (*body)(void* self);
  void* self;
  char* const* first;  ///< tokens acquired before the body, up to null
  char* const* last;   ///< and those released behind it
  context::fiber* here;
  context::fiber* there;
};

/// Not instrumented: what it reads was written where the sanitizer saw nothing.
[[gnu::no_sanitize_thread]] inline void take_turn(void* of) noexcept {
  const turn& t = *static_cast<turn*>(of);
  for (char* const* k = t.first; *k != nullptr; ++k) context::races::acquire(*k);
  t.body(t.self);
  for (char* const* k = t.last; *k != nullptr; ++k) context::races::release(*k);
  context::fiber::switch_to<false>(*t.there, *t.here);
}

/// To be called, where it is not hidden, by whoever is about to run a task. *Throws*: std::bad_alloc.
inline token begin_task() {
  token start = make_token();
  context::races::release(start.get());
  return start;
}

/// Runs the body of a task, with these accesses, on a stack of its own. `now`: the task that runs here; null
/// outside tasks. *Throws*: std::bad_alloc, std::system_error; the body must not.
template <class Body>
void run_apart(std::shared_ptr<task>& now, std::vector<access> accesses, const token& start, Body&& body) {
  constexpr std::size_t stack_size = std::size_t{1} << 19;
  std::shared_ptr<task> self;
  {
    const unseen library;
    self = std::make_shared<task>(task{now});
    const token end = make_token();
    const std::vector<token> waits = objects.before(accesses);
    std::vector<char*> first{start.get()}, last{end.get()};
    for (const token& k : waits) first.push_back(k.get());
    for (const task* t = self.get(); t != nullptr; t = t->parent.get()) last.push_back(t->below.get());
    first.push_back(nullptr);
    last.push_back(nullptr);
    context::fiber here;
    turn t{.body = [](void* b) { (*static_cast<std::remove_reference_t<Body>*>(b))(); },
           .self = const_cast<void*>(static_cast<const void*>(&body)),
           .first = first.data(),
           .last = last.data(),
           .here = &here,
           .there = nullptr};
    context::fiber there(context::stack(stack_size), &take_turn, &t);
    t.there = &there;
    const std::shared_ptr<task> outer = std::exchange(now, self);
    context::fiber::switch_to<false>(here, there);
    now = outer;
    objects.add(accesses, end, waits);
  }
  // Whoever runs a root sees what was done.
  if (now == nullptr) context::races::acquire(self->below.get());
}

/// The accesses of a closure.
inline std::vector<access> accesses_of(closure& c) {
  struct collector : access_visitor {
    std::vector<access> all{};
  } v{{[](access_visitor& self, const access& a) { static_cast<collector&>(self).all.push_back(a); }}};
  for (std::size_t i = 0; i < c.what->objects; ++i)
    v.all.push_back({.object = c.objects()[i], .mode = c.what->modes[i]});
  if (c.what->more != nullptr) c.what->more(c, v);
  return std::move(v.all);
}

/// Events that end tasks: whoever forks comes after those that have happened.
WEFT_PER_PROCESS inline char events = 0;
inline void event_happened() noexcept { context::races::release(&events); }
struct event_seen {
  event_seen() noexcept = default;
  event_seen(const event_seen&) = delete;
  event_seen& operator=(const event_seen&) = delete;
  ~event_seen() { context::races::acquire(&events); }
};

/// What was done up to here comes before what follows a sync of `t`, and of all tasks above it.
inline void release_below(const task* t) noexcept {
  for (; t != nullptr; t = t->parent.get()) context::races::release(t->below.get());
}

/// Ends a sync: the children of the running task have ended.
class synced {
 public:
  explicit synced(const std::shared_ptr<task>& now) noexcept : now_(now) {}
  synced(const synced&) = delete;
  synced& operator=(const synced&) = delete;
  ~synced() {
    if (now_ != nullptr) context::races::acquire(now_->below.get());
  }

 private:
  std::shared_ptr<task> now_;
};

}  // namespace weft::inline WEFT_ABI::sched::races

#else

namespace weft::inline WEFT_ABI::sched::races {

/// See above.
struct unseen {
  constexpr unseen() noexcept {}
};

}  // namespace weft::inline WEFT_ABI::sched::races

#endif
