// SPDX-License-Identifier: BSL-1.0
// How thieves ask a divisible body for work, and how the body's strand waits for what they have taken.
#pragma once

#include <weft/sched/detail/wait.hpp>
#include <weft/sched/divisible_body.hpp>

#include <memory>

namespace weft::inline WEFT_ABI::sched {

inline constexpr descriptor stolen_part::what_{
    .run = [](closure& c) { static_cast<stolen_part&>(c).task.what->run(static_cast<stolen_part&>(c).task); },
    .drop =
        [](closure& c) noexcept {
          auto& self = static_cast<stolen_part&>(c);
          self.dropped = true;
          self.task.what->drop(self.task);
        },
    .options = [](const closure& c) noexcept -> const task_options& {
      const closure& t = static_cast<const stolen_part&>(c).task;
      return t.what->options(t);
    }};

WEFT_FUNCTION stolen_part::stolen_part(closure& c) noexcept : closure(what_), task(c) {}

/// A right of one of the parts that are joined.
struct joined_right {
  access right;
  const joined_right* next;
};

/// Adds the rights of a part to those of others. A part that contributes is folded by whoever joins it,
/// alone: to other tasks that is an update. `allocate` does not fail.
template <class Allocate>
const joined_right* join_rights(const stolen_part& p, const joined_right* all, Allocate allocate) noexcept {
  for (std::size_t i = 0; i < p.right_count; ++i) {
    const access& a = p.all_rights[i];
    const access_mode mode = a.mode == access_mode::read ? access_mode::read : access_mode::update;
    const joined_right* same = all;
    while (same != nullptr && (same->right.object != a.object || same->right.mode != mode)) same = same->next;
    if (same == nullptr)
      all = ::new (allocate(sizeof(joined_right))) joined_right{{.object = a.object, .mode = mode}, all};
  }
  return all;
}

/// What stands in the frame of a divisible body for the parts that thieves have taken from it. Its owner
/// executes it in the ordinary way: it waits for the parts in reference order, and folds what each has
/// contributed.
class parts_join final : public closure {
 public:
  /// `first`: in reference order; may be null. `thrown`: by the steal function, before all parts. `rights`:
  /// of the parts, in memory that lasts as long as the frame. `failing`: an exception is about to leave the
  /// body.
  parts_join(stolen_part* first, std::exception_ptr thrown, const joined_right* rights, bool failing) noexcept
      : closure(what_), first_(first), thrown_(std::move(thrown)), rights_(rights), failing_(failing) {
    local = true;
  }

 private:
  static void run_(closure& c) {
    auto& self = static_cast<parts_join&>(c);
    // The exception of the body comes before those of the parts. It stands behind this, and behind fences
    // that its arguments have put there when they ended. Acquire, twice, pairs with link.
    const closure* behind = self.failing_ ? self.next.load(base::memory_order_acquire) : nullptr;
    while (behind != nullptr && behind->what->fence) behind = behind->next.load(base::memory_order_acquire);
    const bool failed =
        behind != nullptr && behind->state.load(base::memory_order_relaxed) == closure_state::failed;
    if (std::exception_ptr e = self.end_parts(!failed)) std::rethrow_exception(std::move(e));
  }
  static void drop_(closure& c) noexcept { static_cast<parts_join&>(c).end_parts(false); }
  static void more_(closure& c, access_visitor& v) {
    auto& self = static_cast<parts_join&>(c);
    for (const joined_right* r = self.rights_; r != nullptr; r = r->next) v.see(v, r->right);
  }
  static const task_options& options_(const closure&) noexcept {
    static constexpr task_options options{.name = "parts that thieves have taken"};
    return options;
  }

  /// Waits for all parts and frees them. *Returns*: the first exception among them, if they `count`.
  std::exception_ptr end_parts(bool count) noexcept {
    std::exception_ptr first = std::move(thrown_);
    while (first_ != nullptr) {
      const std::unique_ptr<stolen_part> p(std::exchange(first_, first_->older));
      while (!p->ended.is_on()) {
        strand& s = current();
        s.executor->await(s, {.happens = &p->ended}, false);
      }
      if (p->task.privatized && !p->dropped) fold(*p, count && first == nullptr, first);
      p->settle(count && first == nullptr);
      if (p->error && count && first == nullptr) first = std::move(p->error);
    }
    return count ? first : nullptr;
  }
  static void fold(stolen_part& p, bool counts, std::exception_ptr& thrown) noexcept {
    try {
      for (std::uint32_t i = 0; counts && i < p.contributions; ++i) p.task.what->fold(p.task, i);
    } catch (...) {
      thrown = std::current_exception();
    }
    p.task.what->fold(p.task, all_parts);
  }

  static constexpr descriptor what_{
      .run = &run_, .drop = &drop_, .options = &options_, .plain = false, .more = &more_, .at_home = true};

  stolen_part* first_;
  std::exception_ptr thrown_;
  const joined_right* rights_;
  bool failing_;
};

WEFT_FUNCTION divisible_body::divisible_body(void (*give)(void*, theft&), void* context)
    : give_(give),
      context_(context),
      home_(current()),
      listed_(!WEFT_RACES && home_.wanted_surplus != 0 && home_.recorder == nullptr),
      exceptions_(std::uncaught_exceptions()) {
  if (is_outside(home_))
    fail_outside("a steal_function was made outside a task; only a running task has work to give away");
  if (!listed_) return;
  {
    const std::lock_guard hold(home_.divisible_mutex);
    base::atomic<divisible_body*>* link = &home_.divisible;
    divisible_body* last = link->load(base::memory_order_relaxed);  // changed under the lock only
    for (; last != nullptr && last->next_ != nullptr; last = last->next_) {
    }
    if (last != nullptr)
      last->next_ = this;
    else
      base::owner_store(*link, this);  // before the look at sleepers: pairs with event_count::prepare
  }
  if (sleepers_near(home_)) offer(home_, true);
}

WEFT_FUNCTION divisible_body::~divisible_body() {
  if (!listed_) return;
  {
    const std::lock_guard hold(home_.divisible_mutex);
    divisible_body* all = home_.divisible.load(base::memory_order_relaxed);  // changed under the lock only
    if (all == this) {
      home_.divisible.store(next_, base::memory_order_relaxed);
    } else {
      while (all->next_ != this) all = all->next_;
      all->next_ = next_;
    }
  }
  if (newest_ == nullptr && !thrown_) return;
  strand& s = home_;
  const auto allocate = [&s](std::size_t size) {
    void* const place = s.closures.allocate_last_resort(size);
    if (place == nullptr) base::fail("no memory left to wait for what a steal function has given away");
    return place;
  };
  if (s.recorded != nullptr) s.recorded->broken = true;  // which parts there are differs from call to call
  if (!s.pending()) open_frame(s, allocate(sizeof(frame)));
  const bool failing = std::uncaught_exceptions() > exceptions_;
  const joined_right* rights = nullptr;
  for (stolen_part* p = newest_; p != nullptr; p = p->older) {
    p->link(failing || thrown_);
    rights = join_rights(*p, rights, allocate);
  }
  link(*s.top,
       *::new (allocate(sizeof(parts_join))) parts_join(newest_, std::move(thrown_), rights, failing));
}

WEFT_FUNCTION void theft::add(stolen_part& p, int priority) {
  strand& s = engine_.take_strand();
  s.root.current.store(&p, base::memory_order_relaxed);  // published by adopt or submit
  s.victim = nullptr;
  s.priority = priority != 0 ? priority : from_.home_.priority;
  s.at_end = [](strand& of) noexcept {
    auto& ended = *static_cast<stolen_part*>(of.end_of);
    if (of.thrown) ended.error = *std::exchange(of.thrown, std::nullopt);
    return &ended.ended;
  };
  s.end_of = &p;
  p.ended.waiter = &from_.home_;
  p.ended.home = &engine_;
  p.ended.what = "a part of its body, taken by a thief";
  p.older = std::exchange(from_.newest_, &p);
  engine::join_run(s, *from_.home_.run.load(base::memory_order_relaxed));  // constant while the body runs
  if (first_ == nullptr)
    first_ = &s;
  else
    engine_.submit(s);
}

/// Asks the bodies of a strand for work, the outermost first. *Returns*: a strand that executes a part,
/// adopted; or null.
inline strand* worker::take_part(strand& s) noexcept {
  // Relaxed: a first look from outside.
  if (may_take_ != nullptr || s.divisible.load(base::memory_order_relaxed) == nullptr) return nullptr;
  if (!thorough_) {
    if (!s.divisible_mutex.try_lock()) return nullptr;
  } else {
    s.divisible_mutex.lock();
  }
  const std::lock_guard hold(s.divisible_mutex, std::adopt_lock);
  // What steal functions do is work on the run, too.
  if (s.divisible.load(base::memory_order_relaxed) == nullptr || !engine::take_place(s)) return nullptr;
  strand* got = nullptr;
  set_current(in_steal_function);
  for (divisible_body* b = s.divisible.load(base::memory_order_relaxed); b != nullptr && got == nullptr;
       b = b->next_) {
    if (b->thrown_) continue;
    theft visit(*home_, *b, number_.value());
    try {
      b->give_(b->context_, visit);
    } catch (...) {
      b->thrown_ = std::current_exception();
    }
    got = visit.first_;
  }
  set_current(idle_);
  if (got == nullptr) {
    if (worker_share* const share = s.share.load(base::memory_order_relaxed))
      if (strand* const next = share->give_back()) home_->enqueue(*next);
    return nullptr;
  }
  count(counter::steals);
  begin(*got);
  adopt(*got);
  return got;
}

}  // namespace weft::inline WEFT_ABI::sched
