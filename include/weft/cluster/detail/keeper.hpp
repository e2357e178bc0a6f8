// SPDX-License-Identifier: BSL-1.0
// The keeper of a process: executes tasks so that their ends can be recorded, and finds those of an earlier
// job.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/finished_tasks.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/cluster/detail/unit_lengths.hpp>
#include <weft/sched/sync.hpp>
#include <weft/task/run_state.hpp>
#include <weft/task/task_keeper.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// How a kind of task travels, if this one may. Null: it may not.
inline const sched::travel* way_of(const sched::closure& c) noexcept {
  if (c.what->travels == nullptr || *c.what->travels == nullptr) return nullptr;
  const sched::travel* const how = (*c.what->travels)();
  return how != nullptr && how->may_go(c) ? how : nullptr;
}
/// What the type of a task is called in messages and records. *Throws*: weft::error.
inline code_address type_of(const sched::closure& c) {
  return loaded_code::at_start().find(reinterpret_cast<const void*>(*c.what->travels));
}

/// A task below which all has ended when it ends, so that its results are those of the whole.
struct recorded_unit : sched::kept_unit {
  task_name name{};
  unsigned level = 0;
  std::size_t size = 0;  ///< bytes packed for its name and its record
};

/// Decides which tasks are executed as units, and records how they end. A unit is its body with a sync at its
/// end: so all below it has ended, and what it has written can be packed. What is below a recorded unit is
/// not needed any more, so a tree is recorded by its largest parts that have ended.
///
/// *Thread safety*: any worker, but for begin() and look_again().
class keeper final : public sched::task_keeper {
 public:
  using clock = base::clock;
  /// After which time short tasks are looked at again, and a task is recorded that is not shown: some part of
  /// the usual interval between two checkpoints.
  static constexpr std::chrono::milliseconds pause{125};

  /// `largest`: the most bytes of a record. `workers`: of this process.
  keeper(std::size_t largest, unsigned workers) noexcept : largest_(largest), workers_(workers) {}
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

  /// A run begins, of which tasks are looked for there; null: nowhere. `records`: they are recorded there,
  /// too. *Requires*: no task is running.
  void begin(finished_tasks* in, bool records) noexcept {
    in_ = in;
    records_ = records;
    last_record_.store(clock::now().time_since_epoch().count(), base::memory_order_relaxed);
    lengths_.begin(workers_, clock::now());
  }
  /// Whether tasks of the run are recorded. The rest requires it.
  bool is_on() const noexcept { return in_ != nullptr; }
  /// Makes a unit, of this level, in which tasks are to run.
  void enter(recorded_unit& u, const task_name& name, unsigned level) noexcept {
    u.keeper = this;
    u.name = name;
    u.level = level;
    reconsider(u);
  }
  void reconsider(sched::kept_unit& u) noexcept override {
    const unsigned below = static_cast<recorded_unit&>(u).level + 1;
    bool keeps = in_->looking();
    if (!keeps && records_) {
      look_again_(clock::now());
      keeps = lengths_.are_long(below);
    }
    u.keeps.store(keeps, base::memory_order_relaxed);  // a hint
  }

  /// Whether it is time to make a unit of a task that was not shown, since no task has been recorded for
  /// long. *Returns*: true at most so often.
  bool wants_unit(clock::time_point now) noexcept {
    const clock::time_point last{clock::duration(last_record_.load(base::memory_order_relaxed))};
    if (!records_ || now - last < pause) return false;
    last_record_.store(now.time_since_epoch().count(), base::memory_order_relaxed);
    return true;
  }

  /// How a task has ended in an earlier job, if that is known. `packed`: see name_of.
  std::optional<bytes> find(const task_name& name, code_address type) {
    if (!in_->looking() || !in_->may_be_kind(type)) return std::nullopt;
    std::optional<bytes> results = in_->find(name);
    // Relaxed: read when no task is running.
    if (results) found_.fetch_add(1, base::memory_order_relaxed);
    return results;
  }
  /// A task inside of `around` has ended well. *Effects*: none where it was short, or there is no memory.
  void add(const task_name& name, const recorded_unit* around, code_address type, bytes results,
           clock::duration took) noexcept {
    if (!records_ || took < unit_lengths::short_task || results.size() > largest_) return;
    try {
      if (!in_->add(name, around != nullptr ? around->name : task_name{}, type, std::move(results))) return;
      recorded_.fetch_add(1, base::memory_order_relaxed);                                       // as above
      last_record_.store(clock::now().time_since_epoch().count(), base::memory_order_relaxed);  // a hint
    } catch (...) {  // it may be executed again
    }
  }
  /// A task of another process has ended well here, with results of so many bytes.
  void ended_for_other(const task_name& name, std::size_t size) noexcept {
    if (size > largest_) return;  // it is not recorded there
    try {
      in_->recorded_elsewhere(name);
    } catch (...) {  // what is below it stays
    }
  }

  void run(sched::strand& s, sched::closure& c, sched::kept_unit& around) override {
    auto& up = static_cast<recorded_unit&>(around);
    const sched::travel* const how = way_of(c);
    if (how == nullptr) return run_in_place_(s, c, &up);
    const bool looking = in_->looking();
    const bool may_be_unit = records_ && lengths_.are_long(up.level + 1);
    // Below a short task are none to be recorded.
    if (!looking && !may_be_unit) {
      up.keeps.store(false, base::memory_order_relaxed);  // a hint
      return run_unshown_(s, c);
    }
    const auto begun = clock::now();
    look_again_(begun);
    const bool is_unit =
        may_be_unit && context::stack_pointer() > s.stack_limit && lengths_.can_afford(begun);
    if (!looking && !is_unit) return run_unshown_(s, c);
    code_address type;
    recorded_unit own;
    try {
      type = type_of(c);
      if (!is_unit && !in_->may_be_kind(type)) return run_in_place_(s, c, &up);
      writer w;
      w.limit(largest_);
      how->pack(c, w);
      enter(own, name_of(w.bytes().data(), w.bytes().size(), type.module, type.offset), up.level + 1);
      own.size = w.bytes().size();
    } catch (...) {  // it is too long, or there is no memory
      return run_in_place_(s, c, &up);
    }
    if (looking)
      if (const auto results = find_or_not_(own.name, type)) return take_back_(c, *how, *results);
    if (is_unit)
      run_unit_(s, c, *how, up, own, type, begun);
    else
      run_in_place_(s, c, &up);
  }

  /// How many tasks were recorded, and found. *Requires*: no run is going on.
  std::uint64_t recorded() const noexcept { return recorded_.load(base::memory_order_relaxed); }
  std::uint64_t found() const noexcept { return found_.load(base::memory_order_relaxed); }

 private:
  /// From time to time, levels of short tasks are tried again.
  void look_again_(clock::time_point now) noexcept {
    const auto ticks = now.time_since_epoch().count();
    auto due = next_look_.load(base::memory_order_relaxed);  // only one comes through, and that suffices
    if (ticks >= due && next_look_.compare_exchange_strong(due, (now + pause).time_since_epoch().count(),
                                                           base::memory_order_relaxed))
      lengths_.look_again();
  }
  static void run_in_place_(sched::strand& s, sched::closure& c, recorded_unit* in) {
    const sched::inside_unit here(s, in);
    c.what->untraced->run(c);
  }
  /// With all below it, or what it has forked would be shown when its body has returned.
  static void run_unshown_(sched::strand& s, sched::closure& c) {
    if (context::stack_pointer() <= s.stack_limit) return run_in_place_(s, c, nullptr);
    if (const std::exception_ptr thrown = run_body_(s, c, nullptr)) std::rethrow_exception(thrown);
  }
  std::optional<bytes> find_or_not_(const task_name& name, code_address type) noexcept {
    try {
      return find(name, type);
    } catch (...) {  // no memory for it
      return std::nullopt;
    }
  }
  static void take_back_(sched::closure& c, const sched::travel& how, const bytes& results) {
    try {
      reader r{std::span<const std::byte>(results)};
      how.take_back(c, r, true);
    } catch (...) {
      how.lose(c);
      throw;
    }
  }
  /// Whether what a body of the run has written may be less than it would have been without a stop.
  static bool may_be_stopped_(const sched::strand& s) noexcept {
    const sched::run_state& run = *s.run.load(base::memory_order_relaxed);  // constant while it runs
    return run.stopped.load(base::memory_order_acquire) || run.source.stop_requested();
  }
  void run_unit_(sched::strand& s, sched::closure& c, const sched::travel& how, const recorded_unit& up,
                 recorded_unit& own, code_address type, clock::time_point begun) {
    const bool contributes = how.fold != nullptr && !c.privatized;
    if (contributes) c.privatized = true;  // to be packed before they are folded
    const auto packed = clock::now();
    std::exception_ptr thrown = run_body_(s, c, &own);
    const auto ended = clock::now();
    if (!thrown && ended - begun >= unit_lengths::short_task && !may_be_stopped_(s)) {
      try {
        writer w;
        w.limit(largest_);
        how.pack_written(c, w);
        own.size += w.bytes().size();
        add(own.name, &up, type, std::move(w.bytes()), ended - begun);
      } catch (...) {  // it cannot be recorded
      }
    }
    if (contributes) {
      try {
        how.fold(c);
      } catch (...) {
        if (!thrown) thrown = std::current_exception();
      }
    }
    // Not more than it can take: the thread may have lost its processor.
    const auto most = std::chrono::microseconds(20 + own.size / 500);
    lengths_.note(own.level, ended - packed,
                  std::min<clock::duration>((packed - begun) + (clock::now() - ended), most));
    if (thrown) std::rethrow_exception(std::move(thrown));
  }
  /// *Returns*: what is thrown first in reference order by the body and all below it.
  static std::exception_ptr run_body_(sched::strand& s, sched::closure& c, recorded_unit* in) noexcept {
    const sched::inside_unit here(s, in);
    try {
      try {
        c.what->untraced->run(c);
      } catch (...) {
        if (!s.pending()) throw;
        sched::raise(s, std::current_exception());
      }
      if (s.pending()) sched::sync(s);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  finished_tasks* in_ = nullptr;  // constant during a run, as the next
  bool records_ = false;
  const std::size_t largest_;
  const unsigned workers_;
  unit_lengths lengths_;
  base::atomic<clock::duration::rep> next_look_{0}, last_record_{0};
  base::atomic<std::uint64_t> recorded_{0}, found_{0};
};

}  // namespace weft::inline WEFT_ABI::remote
