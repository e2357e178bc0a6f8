// SPDX-License-Identifier: BSL-1.0
// One run of an overlay: recurrent tasks take their turns as soon as their last request is granted.
#pragma once

#include <weft/orwl/order.hpp>
#include <weft/sched/crew.hpp>
#include <weft/sched/forking.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace weft::orwl {

class turn;

/// When a turn began and ended, in nanoseconds since the run began.
struct turn_times {
  std::int64_t begin;
  std::int64_t end;
};

namespace detail {

/// What a recurrent task does in its turn.
struct body {
  body() = default;
  body(const body&) = delete;
  body& operator=(const body&) = delete;
  virtual ~body() = default;
  virtual void call(turn& t) = 0;
};

/// A recurrent task of a run.
///
/// Who may touch it when:
///  1. `missing` is counted down by those for whom the task waits, and set anew by its own turn, before the
///  end of that turn lets anybody count.
///  2. `done` is written by its own turns; neighbours may read it.
///  3. `next` belongs to the list of ready players; everything else is constant, or belongs to the turn.
struct alignas(64) player {
  base::atomic<std::uint32_t> missing{0};  ///< how many have to take a turn before this one
  std::uint32_t predecessors = 0;
  base::atomic<std::uint64_t> done{0};  ///< turns taken
  player** successors = nullptr;        ///< those that count down after a turn,
  player** successors_end = nullptr;
  body* does = nullptr;
  player* next = nullptr;
  std::vector<turn_times>* times = nullptr;  ///< null: nobody wants to know
  sched::task_options options;
};

/// Executes the turns. There is one object per run.
/// *Thread safety*: see the members; they are called by the members of a crew.
class turns {
 public:
  static constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

  turns(std::vector<player>& players, std::uint64_t limit) : players_(players), limit_(limit) {}
  turns(const turns&) = delete;
  turns& operator=(const turns&) = delete;

  /// Takes all turns. *Requires*: called in a task. *Throws*: the exception of a turn; std::bad_alloc,
  /// std::system_error before the first one. *Suspends*: yes.
  void take_all(const sched::task_options& helpers) {
    sched::strand& s = sched::current();
    sched::crew others(
        s, [](void* self) noexcept { static_cast<turns*>(self)->help(); }, this, helpers,
        "the turns of an ORWL overlay");
    others_ = &others;
    start_ = base::clock::now();
    for (player& p : players_)
      if (p.missing.load(base::memory_order_relaxed) == 0 && limit_.load(base::memory_order_relaxed) != 0)
        enqueue(p);  // nobody else is here
#if WEFT_RACES
    context::races::release(this);
#endif
    work(s, false);
    others.wait();
#if WEFT_RACES
    context::races::acquire(&others_);
#endif
    if (error_) std::rethrow_exception(error_);
    if (over_.load(base::memory_order_relaxed))
      return;  // nobody else is here; the run was stopped, and will say so
    for (const player& p : players_)
      if (p.done.load(base::memory_order_relaxed) != limit_.load(base::memory_order_relaxed))
        base::fail("an ORWL overlay has come to a standstill");
  }

  /// No turn begins after that of this iteration. *Requires*: none has begun. *Thread safety*: any turn.
  void end_after(std::uint64_t iteration) noexcept {
    // Relaxed: whoever may begin a later turn does so after the end of the one that calls this.
    std::uint64_t now = limit_.load(base::memory_order_relaxed);
    while (now > iteration && !limit_.compare_exchange_weak(now, iteration, base::memory_order_relaxed)) {
    }
  }
  std::uint64_t limit() const noexcept { return limit_.load(base::memory_order_relaxed); }
  std::span<player> players() noexcept { return players_; }

 private:
  void help() noexcept {
#if WEFT_RACES
    context::races::acquire(this);
#endif
    work(sched::current(), true);
#if WEFT_RACES
    context::races::release(&others_);
#endif
  }

  /// Takes turns as long as somebody is ready.
  void work(sched::strand& s, bool was_called) noexcept {
    [[maybe_unused]] const sched::races::unseen library;
    player* p = dequeue(was_called);
    while (p != nullptr) {
      p = take(s, *p);
      if (p == nullptr) p = dequeue(false);
    }
  }

  /// One turn. *Returns*: somebody who is ready now, and known to nobody else.
  player* take(sched::strand& s, player& p) noexcept;
  void call_body(player& p, std::uint64_t iteration);

  /// Puts a player that has become ready behind the others, and sends for help, which comes when a worker has
  /// nothing else to do.
  void offer(player& p) noexcept {
    bool call = false;
    {
      const std::lock_guard hold(door_);
      enqueue(p);
      call = !std::exchange(called_, true);
    }
    if (call) send_for_help();
  }
  void enqueue(player& p) noexcept {
    p.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &p;
    last_ = &p;
  }
  /// *Returns*: the player that has been ready for the longest time; null if there is none.
  player* dequeue(bool was_called) noexcept {
    bool call = false;
    player* p = nullptr;
    {
      const std::lock_guard hold(door_);
      if (was_called) called_ = false;
      if (over_.load(base::memory_order_relaxed) || first_ == nullptr) return nullptr;
      p = first_;
      first_ = p->next;
      if (first_ == nullptr)
        last_ = nullptr;
      else
        call = !std::exchange(called_, true);
    }
    if (call) send_for_help();
    return p;
  }
  void send_for_help() noexcept {
    if (others_->call()) return;
    const std::lock_guard hold(door_);
    called_ = false;
  }
  /// Nothing begins any more.
  void end_early() noexcept {
    const std::lock_guard hold(door_);
    over_.store(true, base::memory_order_relaxed);
  }
  static bool is_cancelled(const std::exception_ptr& e) noexcept {
    try {
      std::rethrow_exception(e);
    } catch (const cancelled&) {
      return true;
    } catch (...) {
      return false;
    }
  }
  /// The first exception, by iteration and task, of those that are thrown before everything ends; but for
  /// what the first one itself has cancelled.
  void fail(sched::strand& s, std::exception_ptr e, std::uint64_t iteration, const player& p) noexcept {
    {
      const std::lock_guard hold(door_);
      over_.store(true, base::memory_order_relaxed);
      const std::pair<std::uint64_t, const player*> place{iteration, &p};
      if (!error_ || (place < failed_ && !is_cancelled(e))) {
        error_ = std::move(e);
        failed_ = place;
      }
    }
    s.run.load(base::memory_order_relaxed)
        ->waits.close();  // the run is the overlay's own; bodies may wait in it
  }

  std::vector<player>& players_;
  sched::crew* others_ = nullptr;
  base::clock::time_point start_;
  base::atomic<std::uint64_t> limit_;

  alignas(64) base::spin_lock door_;  // of what follows
  player* first_ = nullptr;           // ready, and known to nobody
  player* last_ = nullptr;
  bool called_ = false;             // somebody will come
  base::atomic<bool> over_{false};  // set behind the door; a hint for others
  std::exception_ptr error_;
  std::pair<std::uint64_t, const player*> failed_{};
};

}  // namespace detail

/// What a body may ask of its turn, as an additional first parameter. *Thread safety*: within the turn.
class turn {
 public:
  turn(detail::turns& all, detail::player& mine, std::uint64_t iteration) noexcept
      : all_(all), mine_(mine), iteration_(iteration) {}
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  /// Which turn of the task this is, from 0.
  std::uint64_t iteration() const noexcept { return iteration_; }
  /// Lets the overlay end as soon as all tasks can end after the same iteration: as many iterations later as
  /// the farthest task is away, counted in neighbours. The result does not depend on the schedule. Several
  /// may call it; the earliest end counts. *Throws*: std::bad_alloc. *Cost*: visits all tasks.
  void stop() {
    std::vector<bool> seen(all_.players().size(), false);
    std::vector<detail::player*> ring{&mine_}, next;
    const detail::player* const base = all_.players().data();
    seen[static_cast<std::size_t>(&mine_ - base)] = true;
    std::uint64_t distance = 0;
    for (;; ++distance) {
      next.clear();
      for (const detail::player* p : ring)
        for (detail::player** q = p->successors; q != p->successors_end; ++q)
          if (const auto i = static_cast<std::size_t>(*q - base); !seen[i]) {
            seen[i] = true;
            next.push_back(*q);
          }
      if (next.empty()) break;
      ring.swap(next);
    }
    all_.end_after(iteration_ + std::max<std::uint64_t>(distance, 1));
  }

 private:
  detail::turns& all_;
  detail::player& mine_;
  std::uint64_t iteration_;
};

namespace detail {

inline void turns::call_body(player& p, std::uint64_t iteration) {
  turn t(*this, p, iteration);
#if WEFT_RACES
  struct shown {
    shown() { context::races::show(); }
    ~shown() { context::races::hide(); }
  } const here;
#endif
  p.does->call(t);
}

inline player* turns::take(sched::strand& s, player& p) noexcept {
  const std::uint64_t iteration = p.done.load(base::memory_order_relaxed);  // its own
  const auto began = p.times != nullptr ? base::clock::now() : base::clock::time_point();
#if WEFT_RACES
  context::races::show();
  context::races::acquire(&p);
  context::races::hide();
#endif
  sched::interruption around;
  sched::interrupt(s, around);
  s.inline_name = p.options.name;
  try {
    call_body(p, iteration);
  } catch (...) {
    sched::raise(s, std::current_exception());
  }
  if (s.pending()) [[unlikely]]
    sched::drain_children(s);
  sched::go_on(s, around);
  if (p.times != nullptr) {
    try {
      p.times->push_back({(began - start_).count(), (base::clock::now() - start_).count()});
    } catch (const std::bad_alloc&) {  // the record then ends here
      p.times = nullptr;
    }
  }
  if (s.thrown) [[unlikely]] {
    fail(s, *std::exchange(s.thrown, std::nullopt), iteration, p);
    return nullptr;
  }
  if (sched::look(s)) [[unlikely]]
    end_early();
#if WEFT_CHECKED
  for (player** q = p.successors; q != p.successors_end; ++q)
    if (const std::uint64_t theirs = (*q)->done.load(base::memory_order_relaxed);
        theirs > iteration + 1 || theirs + 1 < iteration)
      base::fail("two neighbours of an ORWL overlay, '%s' and '%s', are more than one iteration apart",
                 p.options.name, (*q)->options.name);
#endif
  p.done.store(iteration + 1, base::memory_order_relaxed);  // published by the countdown below
  p.missing.store(p.predecessors, base::memory_order_relaxed);
  player* mine = nullptr;
  const auto ready = [&](player& q) {
    // Relaxed, twice: the countdown orders both.
    if (q.done.load(base::memory_order_relaxed) == limit_.load(base::memory_order_relaxed)) return;
    if (mine == nullptr)
      mine = &q;
    else
      offer(q);
  };
  for (player** q = p.successors; q != p.successors_end; ++q) {
#if WEFT_RACES
    context::races::show();
    context::races::release(*q);
    context::races::hide();
#endif
    // Release publishes this turn to the next one of the other; acquire lets the last one pass on what the
    // others have published.
    if ((*q)->missing.fetch_sub(1, base::memory_order_acq_rel) == 1) ready(**q);
  }
  if (p.predecessors == 0) ready(p);                               // nobody would tell it
  return over_.load(base::memory_order_relaxed) ? nullptr : mine;  // a hint; dequeue looks behind the door
}

}  // namespace detail
}  // namespace weft::orwl
