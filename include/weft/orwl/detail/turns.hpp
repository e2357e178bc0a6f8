// SPDX-License-Identifier: BSL-1.0
// One run of an overlay: recurrent tasks take their turns as soon as their last request is granted.
#pragma once

#include <weft/blocking/definitions.hpp>
#include <weft/blocking/ready_queue.hpp>
#include <weft/orwl/location.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
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

/// A recurrent task as it was declared.
struct declared {
  std::unique_ptr<body> does;
  sched::task_options options;
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
  void take_all();

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
  /// The body of a turn in a run that is recorded. *Throws*: what that throws; as observe::recorded_body.
  /// *Cost*: visits all tasks.
  void call_recorded(sched::strand& s, player& p, turn& t);

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
  /// may call it; the earliest end counts. *Throws*: usage_error if there are tasks that share no
  /// location, not even by way of others, with this one; std::bad_alloc. *Cost*: visits all tasks.
  void stop();

 private:
  detail::turns& all_;
  detail::player& mine_;
  std::uint64_t iteration_;
};

}  // namespace weft::inline WEFT_ABI::orwl
