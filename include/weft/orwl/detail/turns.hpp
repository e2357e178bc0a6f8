// SPDX-License-Identifier: BSL-1.0
// One run of an overlay: recurrent tasks take their turns as soon as their last request is granted.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/ready_queue.hpp>
#include <weft/orwl/detail/order.hpp>
#include <weft/orwl/location.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace weft::inline WEFT_ABI::orwl {

class turn;

/// When a turn began and ended, in nanoseconds since the run began.
struct turn_times {
  std::int64_t begin;
  std::int64_t end;
};

namespace detail {

/// The value of one location that another one takes over.
struct copying {
  any_location* to;
  const any_location* from;

  void now() const { to->assign(*from); }
};

/// What a recurrent task does in its turn.
struct body {
  body() = default;
  body(const body&) = delete;
  body& operator=(const body&) = delete;
  virtual ~body() = default;
  virtual void call(turn& t) = 0;
  /// Uses another location of the same type for one of its requests, which are counted from 0.
  virtual void redirect(std::size_t request, any_location& to) noexcept = 0;

  std::vector<copying> before;  ///< to be done at the beginning of each turn
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
/// *Thread safety*: see the members.
class turns {
 public:
  static constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

  turns(std::vector<player>& players, std::uint64_t limit) : players_(players), limit_(limit) {}
  turns(const turns&) = delete;
  turns& operator=(const turns&) = delete;

  /// Takes all turns. *Requires*: called in a task. *Throws*: the exception of a turn; std::bad_alloc,
  /// std::system_error before the first one. *Suspends*: yes.
  void take_all() {
    static constexpr sched::task_options helpers{.name = "overlay"};
    start_ = base::clock::now();
    for (player& p : players_)
      // Relaxed, twice: nobody else is here.
      if (p.missing.load(base::memory_order_relaxed) == 0 && limit_.load(base::memory_order_relaxed) != 0)
        ready_.begin_with(p);
    ready_.take_all(helpers, "the turns of an ORWL overlay",
                    [this](sched::strand& s, player& p) noexcept { return take(s, p); });
    if (ready_.over()) return;  // the run was stopped, and will say so
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
  std::uint64_t limit() const noexcept { return limit_.load(base::memory_order_relaxed); }  // after the run
  std::span<player> players() noexcept { return players_; }

 private:
  /// One turn. *Returns*: somebody who is ready now, and known to nobody else.
  player* take(sched::strand& s, player& p) noexcept;

  std::vector<player>& players_;
  base::clock::time_point start_;
  base::atomic<std::uint64_t> limit_;
  sched::ready_queue<player> ready_;
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

inline player* turns::take(sched::strand& s, player& p) noexcept {
  const std::uint64_t iteration = p.done.load(base::memory_order_relaxed);  // its own
  const auto began = p.times != nullptr ? base::clock::now() : base::clock::time_point();
  const std::exception_ptr failure = sched::call_as_task(s, p.options.name, [&] {
    turn t(*this, p, iteration);
#if WEFT_RACES
    context::races::acquire(&p);
#endif
    p.does->call(t);
#if WEFT_RACES
    for (player** q = p.successors; q != p.successors_end; ++q) context::races::release(*q);
    ready_.let_see();
#endif
  });
  if (p.times != nullptr) {
    try {
      p.times->push_back({(began - start_).count(), (base::clock::now() - start_).count()});
    } catch (const std::bad_alloc&) {  // the record then ends here
      p.times = nullptr;
    }
  }
  if (failure) [[unlikely]] {
    ready_.fail(s, failure, {iteration, static_cast<std::uint64_t>(&p - players_.data())});
    return nullptr;
  }
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
  std::uint64_t least = 0;
  // Goes on where the serial program would: with the earliest iteration, and there with the first task.
  const auto ready = [&](player& q) {
    const std::uint64_t done =
        q.done.load(base::memory_order_relaxed);  // ordered by the countdown, as the limit
    if (done == limit_.load(base::memory_order_relaxed)) return;
    player* other = &q;
    if (mine == nullptr || done < least) {
      other = std::exchange(mine, &q);
      least = done;
    }
    if (other != nullptr) ready_.offer(*other);
  };
  for (player** q = p.successors; q != p.successors_end; ++q) {
    // Release publishes this turn to the next one of the other; acquire lets the last one pass on what the
    // others have published.
    if ((*q)->missing.fetch_sub(1, base::memory_order_acq_rel) == 1) ready(**q);
  }
  if (p.predecessors == 0) ready(p);  // nobody would tell it
  return mine;
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::orwl
