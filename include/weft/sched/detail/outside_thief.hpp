// SPDX-License-Identifier: BSL-1.0
// How a thief outside the engine gets in: with the hand of a worker that has no thread.
#pragma once

#include <weft/sched/detail/worker_loop.hpp>
#include <weft/sched/outside_thief.hpp>
#include <weft/task/task_keeper.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::sched {

WEFT_FUNCTION outside_thief::outside_thief(engine& from, thief_filter may_take)
    : engine_(from), hand_(std::make_unique<worker>(from, 0, nullptr)) {
  hand_->may_take_ = may_take;
  from.expect_outside_thief();
}

WEFT_FUNCTION outside_thief::~outside_thief() {
  engine_.carrier = nullptr;
  if (hand_->spare_ != nullptr) engine_.put_strand(*hand_->spare_);
}

WEFT_FUNCTION thread_carrier* carrier_of(const strand& s) noexcept { return s.executor->home().carrier; }

WEFT_FUNCTION void outside_thief::carry_threads_by(thread_carrier& c) noexcept { engine_.carrier = &c; }

WEFT_FUNCTION strand* outside_thief::steal(std::size_t wanted) noexcept {
  hand_->more_wanted_ = wanted - 1;
  strand* const got = hand_->steal();
  std::reverse(hand_->more_.begin(), hand_->more_.end());  // so that the last one is the next
  // Nobody executes it here: what it stands for has no frames to look into.
  hand_->running_.store(nullptr, base::memory_order_relaxed);  // no thief knows this worker
  if (got == nullptr) hand_->announce_hunger();
  set_current(context::outside);
  return got;
}

WEFT_FUNCTION strand* outside_thief::steal(thief_filter may_take) noexcept {
  const thief_filter usual = std::exchange(hand_->may_take_, may_take);
  strand* const got = steal();
  hand_->may_take_ = usual;
  return got;
}

WEFT_FUNCTION strand* outside_thief::next_taken() noexcept {
  if (hand_->more_.empty()) return nullptr;
  strand* const next = hand_->more_.back();
  hand_->more_.pop_back();
  return next;
}

WEFT_FUNCTION strand* outside_thief::steal_beside(const strand& s, std::size_t taken) noexcept {
  // The graph does not end before the task that was taken from it.
  strand* const got =
      s.source_graph != nullptr ? hand_->take_beside(*s.source_graph, *s.victim, taken) : nullptr;
  hand_->running_.store(nullptr, base::memory_order_relaxed);  // as in steal
  set_current(context::outside);
  return got;
}

WEFT_FUNCTION closure& outside_thief::task_of(const strand& s) noexcept {
  return *s.root.current.load(base::memory_order_relaxed);  // set by this thread
}

/// Hands over a strand that this hand has adopted.
WEFT_FUNCTION void outside_thief::pass_on(strand& s) noexcept {
  hand_->running_.store(nullptr, base::memory_order_relaxed);  // as in steal
  s.mutex.lock();
  s.status.store(strand_status::waiting, base::memory_order_relaxed);  // ordered by the lock
  s.mutex.unlock();
  engine_.enqueue(s);  // it is admitted
}

WEFT_FUNCTION void outside_thief::give_back(strand& s) noexcept { pass_on(s); }

WEFT_FUNCTION void outside_thief::end(strand& s, std::exception_ptr thrown) noexcept {
  hand_->in_vain_.forget();
  if (thrown) s.thrown = std::move(thrown);
  release_objects(s, s.root.objects);
  if (strand* const next = hand_->end(s)) pass_on(*next);
  set_current(context::outside);
  // A worker that has ended a task looks for the next one, so whoever makes others ready need not wake
  // anybody. This hand does not look.
  base::fence();  // what became ready before the look at sleepers
  if (engine_.bell.any_waiting()) engine_.bell.notify_one();
}

WEFT_FUNCTION bool outside_thief::stopped(const strand& s) noexcept {
  return s.run.load(base::memory_order_relaxed)->stopped.load(base::memory_order_acquire);  // see stop
}

WEFT_FUNCTION kept_unit* outside_thief::unit_of_run(const strand& s) noexcept {
  return s.run.load(base::memory_order_relaxed)->unit;  // constant, both
}

WEFT_FUNCTION void outside_thief::request_stop(strand& s) noexcept {
  s.run.load(base::memory_order_relaxed)->source.request_stop();  // constant while it has not ended
}

WEFT_FUNCTION void outside_thief::stop(run_state& run) noexcept { engine_.stop(run); }

WEFT_FUNCTION std::uint64_t outside_thief::visits() const noexcept {
  return hand_->counters().of[counter::steal_attempts].load(base::memory_order_relaxed);  // see add
}

WEFT_FUNCTION unsigned outside_thief::workers() const noexcept {
  return static_cast<unsigned>(engine_.workers.size());
}

WEFT_FUNCTION bool outside_thief::workers_idle() const noexcept { return engine_.any_idle(); }

WEFT_FUNCTION strand& outside_thief::execute(outside_task& task, run_state& run) {
  strand& s = engine_.take_strand();
  s.victim = nullptr;
  s.priority = 0;
  s.at_end = [](strand& of) noexcept -> signal* {
    auto& ended = *static_cast<outside_task*>(of.end_of);
    std::exception_ptr thrown;
    if (of.thrown) thrown = *std::exchange(of.thrown, std::nullopt);
    ended.ended(ended, std::move(thrown));
    return nullptr;
  };
  s.end_of = &task;
  run.observed = engine_.trace != nullptr;
  s.root.current.store(task.root, base::memory_order_relaxed);  // published by submit
  engine::join_run(s, run);
  if (run.unit != nullptr && !run.observed) enter_unit(s, run.unit);
  engine_.submit(s);
  return s;
}

WEFT_FUNCTION bool outside_thief::withdraw(strand& s) noexcept {
  if (!engine_.submitted.remove_unbegun(s)) return false;
  engine_.put_strand(s);
  return true;
}

WEFT_FUNCTION bool outside_thief::occupies_worker(const strand& s) noexcept {
  const strand_status now = s.status.load(base::memory_order_relaxed);  // a hint
  return now == strand_status::idle || now == strand_status::running;
}

}  // namespace weft::inline WEFT_ABI::sched
