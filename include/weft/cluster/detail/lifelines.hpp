// SPDX-License-Identifier: BSL-1.0
// The processes at which this one waits for tasks, and those that wait at this one.
#pragma once

#include <weft/base/platform.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// The lifelines of a process: a few others, always the same, which it asks once and which answer when they
/// have tasks to spare, or when the run is over. So every request has one answer, and a process without work
/// sends nothing meanwhile. Tasks that one process has reach all others along the lifelines in few steps.
/// *Thread safety*: one thread.
///
/// *Source*: Saraswat, Kambadur, Kodali, Grove, Krishnamoorthy, Lifeline-based global load balancing
/// (PPoPP'11). The graph: Imase and Itoh, A design for directed graphs with minimum diameter (IEEE
/// Transactions on Computers, 1983).
class lifelines {
 public:
  using time_point = base::clock::time_point;
  static constexpr int nobody = -1;
  /// How many there are of each process, and how many others wait at one process at most.
  static constexpr int degree = 2;
  /// Who waits for tasks has nothing from those who have not forked any yet, but may hear of others.
  static constexpr std::chrono::microseconds patience{50};

  /// A process that waits for tasks of this one.
  struct waiter {
    int process;
    std::uint32_t run;
    unsigned wanted;  ///< so many tasks at most
  };

  /// Whose tasks come to `rank` along one lifeline: in a cluster of n processes all that one has reach all
  /// others in log n steps, to the base of the degree. *Throws*: std::bad_alloc.
  static std::vector<int> of(int rank, int size) {
    std::vector<int> all;
    if (size - 1 <= degree) {
      for (int i = 0; i < size; ++i)
        if (i != rank) all.push_back(i);
      return all;
    }
    for (int r = 1; r <= degree; ++r) {
      const auto sum = std::int64_t{degree} * rank + r;
      const auto to = static_cast<int>((size - sum % size) % size);
      if (to != rank) all.push_back(to);
    }
    return all;
  }

  /// *Throws*: std::bad_alloc.
  lifelines(int rank, int size) {
    for (const int to : of(rank, size)) lines_.push_back({to, false});
    waiters_.reserve(2 * std::size_t{degree});
  }

  /// A run begins. Others may wait for its tasks already.
  void begin() noexcept { giver_ = nobody; }

  /// Calls `ask(to)` for those at which this process does not wait yet.
  template <class Ask>
  void wait_at_all(Ask ask) {
    for (line& l : lines_) {
      if (l.waits) continue;
      l.waits = true;
      ask(l.to);
    }
  }
  /// Another process has answered.
  void answered(int from) noexcept {
    for (line& l : lines_) l.waits = l.waits && l.to != from;
  }
  /// Whether this process waits anywhere.
  bool waits() const noexcept {
    for (const line& l : lines_)
      if (l.waits) return true;
    return false;
  }

  /// Another process waits at this one. *Throws*: std::bad_alloc.
  void add(const waiter& w) { waiters_.push_back(w); }
  /// Whoever has waited longest for tasks of this run. *Returns*: null: nobody waits.
  const waiter* first(std::uint32_t run) const noexcept {
    for (const waiter& w : waiters_)
      if (w.run == run) return &w;
    return nullptr;
  }
  /// That process, if it waits for tasks of this run. *Returns*: null if it does not.
  const waiter* find(int process, std::uint32_t run) const noexcept {
    for (const waiter& w : waiters_)
      if (w.process == process && w.run == run) return &w;
    return nullptr;
  }
  /// It waits no longer. *Requires*: first() or find() has returned it, and nothing was added since.
  void remove(const waiter* w) noexcept { waiters_.erase(waiters_.begin() + (w - waiters_.data())); }

  /// This process has tasks of another one, which may have more.
  void has_given(int process, time_point now) noexcept {
    if (giver_ == nobody) since_ = now;
    giver_ = process;
  }
  /// That one has none.
  void has_nothing(int process) noexcept {
    if (giver_ == process) giver_ = nobody;
  }
  /// Whom to name to those who wait here, where this process has had nothing to spare for a while. Each time
  /// that it gets tasks once. *Returns*: that, or nobody.
  int name_giver(time_point now) noexcept {
    if (giver_ == nobody || now - since_ < patience) return nobody;
    const int named = giver_;
    giver_ = nobody;
    return named;
  }

 private:
  struct line {
    int to;
    bool waits;
  };
  std::vector<line> lines_;
  std::vector<waiter> waiters_;  // in the order in which they came
  int giver_ = nobody;           // who has none, or was named, is none
  time_point since_{};
};

}  // namespace weft::inline WEFT_ABI::remote
