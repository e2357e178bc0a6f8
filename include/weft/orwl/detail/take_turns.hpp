// SPDX-License-Identifier: BSL-1.0
// How recurrent tasks take their turns, and how one of them ends the run.
#pragma once

#include <weft/observe/recorded_body.hpp>
#include <weft/observe/traced_body.hpp>
#include <weft/orwl/detail/turns.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::orwl {
namespace detail {

WEFT_FUNCTION void turns::take_all() {
  static constexpr sched::task_options helpers{.name = "overlay"};
  start_ = base::clock::now();
  for (player& p : players_)
    // Relaxed, twice: nobody else is here.
    if (p.missing.load(base::memory_order_relaxed) == 0 && limit_.load(base::memory_order_relaxed) != 0)
      ready_.begin_with(p);
  const auto work = [this](sched::strand& s, player& p) noexcept { return take(s, p); };
  if (sched::strand& s = sched::current(); s.recorder != nullptr) [[unlikely]] {
    ready_.take_all_alone(work);
    s.recorder->sync();
  } else {
    ready_.take_all(helpers, "the turns of an ORWL overlay", work);
  }
  if (ready_.over()) return;  // the run was stopped, and will say so
  for (const player& p : players_)
    if (p.done.load(base::memory_order_relaxed) != limit_.load(base::memory_order_relaxed))
      base::fail("an ORWL overlay has come to a standstill");
}

WEFT_FUNCTION void turns::call_recorded(sched::strand& s, player& p, turn& t) {
  observe::recorded_body here(s, p.options.name);
  // As if each task changed a value in its turn, from those of the tasks for which it waits. That a task
  // waits for those that have read its value adds nothing: they lie between two of its turns anyway.
  for (const player& q : players_)
    if (std::find(q.successors, q.successors_end, &p) != q.successors_end)
      here.add({.object = &q, .mode = sched::access_mode::read});
  here.add({.object = &p, .mode = sched::access_mode::update});
  here.begin();
  p.does->call(t);
}

WEFT_FUNCTION player* turns::take(sched::strand& s, player& p) noexcept {
  const std::uint64_t iteration = p.done.load(base::memory_order_relaxed);  // its own
  const auto began = p.times != nullptr ? base::clock::now() : base::clock::time_point();
  const std::exception_ptr failure = sched::call_as_task(s, p.options.name, [&] {
    turn t(*this, p, iteration);
#if WEFT_RACES
    context::races::acquire(&p);
#endif
    if (s.recorder != nullptr) [[unlikely]] {
      call_recorded(s, p, t);
    } else if (s.row != nullptr) [[unlikely]] {
      const observe::traced_body here(s, p.options.name, 0);
      p.does->call(t);
    } else {
      p.does->call(t);
    }
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

WEFT_FUNCTION void turn::stop() {
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
  if (std::find(seen.begin(), seen.end(), false) != seen.end())  // nobody knows how far the other parts are
    throw usage_error("weft: an overlay whose parts share no location cannot be stopped by a turn");
  all_.end_after(iteration_ + (distance == 0 ? 1 : distance));
}

}  // namespace weft::inline WEFT_ABI::orwl
