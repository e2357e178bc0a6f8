// SPDX-License-Identifier: BSL-1.0
// Who executes the tasks of a run in place of their bodies, because it may know already how they end.
#pragma once

#include <weft/task/closure.hpp>
#include <weft/task/strand.hpp>

namespace weft::inline WEFT_ABI::sched {

class task_keeper;

/// A task, or a run, whose end the keeper notes as one. It lives as long as anything below it.
struct kept_unit {
  task_keeper* keeper = nullptr;
  /// What it forks is shown to the keeper, who may change its mind. Relaxed: a hint.
  base::atomic<bool> keeps{false};
};

/// Is shown the tasks of a run as they begin. *Thread safety*: any worker.
class task_keeper {
 public:
  /// Executes the body of a claimed task, or does what it would have done. It stands for the run function of
  /// the task's kind, which is `c.what->untraced`. `around`: the unit in which it was forked. *Throws*: what
  /// the body throws.
  virtual void run(strand& s, closure& c, kept_unit& around) = 0;
  /// Decides anew whether what a unit forks is to be shown. A body of it has waited for what it has forked.
  virtual void reconsider(kept_unit& u) noexcept = 0;

 protected:
  ~task_keeper() = default;
};

/// Bodies of the strand run in a unit from now on; null: in none. *Requires*: the caller owns the strand.
inline void enter_unit(strand& s, kept_unit* u) noexcept {
  s.unit = u;
  const bool keeps = u != nullptr && u->keeps.load(base::memory_order_relaxed);
  // Relaxed, all: the bit is the owner's own.
  if (((s.attention.load(base::memory_order_relaxed) & observed) != 0) == keeps) return;
  if (keeps)
    s.attention.fetch_or(observed, base::memory_order_relaxed);
  else
    s.attention.fetch_and(static_cast<std::uint8_t>(~observed), base::memory_order_relaxed);
}

/// The running body is in a unit as long as this lives. *Requires*: the run is neither traced nor recorded.
class inside_unit {
 public:
  inside_unit(strand& s, kept_unit* u) noexcept : strand_(s), outer_(s.unit) { enter_unit(s, u); }
  inside_unit(const inside_unit&) = delete;
  inside_unit& operator=(const inside_unit&) = delete;
  ~inside_unit() { enter_unit(strand_, outer_); }

 private:
  strand& strand_;
  kept_unit* const outer_;
};

/// Whether the tasks that the running body forks are shown to a keeper.
inline bool is_kept(const strand& s) noexcept {
  return s.unit != nullptr && s.unit->keeps.load(base::memory_order_relaxed) && s.recorded == nullptr;
}

/// The running body has waited for its children.
WEFT_COLD inline void reconsider_unit(strand& s) noexcept {
  s.unit->keeper->reconsider(*s.unit);
  enter_unit(s, s.unit);
}

/// The unit in which a task was forked that is shown to a keeper. *Requires*: it is.
inline kept_unit& unit_around(const closure& c) noexcept {
  return *reinterpret_cast<kept_unit*>(static_cast<std::uintptr_t>(c.stamp()));
}

}  // namespace weft::inline WEFT_ABI::sched
