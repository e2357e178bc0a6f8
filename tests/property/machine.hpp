// SPDX-License-Identifier: BSL-1.0
// What the tasks of a random program share while it runs, beside its objects.
#pragma once

#include "program.hpp"

#include <weft/threads/condition.hpp>
#include <weft/threads/mutex.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <vector>

namespace property {

/// Ways to use the library that a test wants to see: each shape of a task, and behind them these.
enum class use : unsigned char {
  result_in_memory,
  result_returned,
  shared_part,   ///< taken by a thief from a loop with a steal function
  spawned,       ///< a body with a flow of its own
  lock_section,  ///< of the lock of a counter
  lock_wait,     ///< another one had that lock
  turn,          ///< of a body of a baton
  turn_wait,     ///< it had to wait for that
  last
};
/// How often each was used. Shared by all value types.
inline std::array<std::atomic<std::uint64_t>, shapes::all::size + static_cast<std::size_t>(use::last)> uses{};
inline void note_use(std::size_t shape) {
  uses[shape].fetch_add(1, std::memory_order_relaxed);  // a statistic, read at the end
}
inline void note_use(use u) { note_use(shapes::all::size + static_cast<std::size_t>(u)); }

/// A sum to which bodies add in any order, one at a time by its lock.
class counter {
 public:
  void add(std::uint64_t v) {
    if (!lock_.try_lock()) {
      note_use(use::lock_wait);
      lock_.lock();
    }
    const std::lock_guard hold(lock_, std::adopt_lock);
    note_use(use::lock_section);
    const std::uint64_t before = sum_;
    if (v % 4 == 0) weft::base::yield();  // so that a second one inside gets a chance to do harm
    sum_ = before + v;
  }
  /// *Requires*: the run has ended.
  std::uint64_t sum() const { return sum_; }

 private:
  weft::mutex lock_{};
  std::uint64_t sum_ = 0;
};

/// Bodies that take turns, whatever order they begin in. Who has the turn may use the log.
struct baton {
  weft::condition<int> turn{0};
  std::uint64_t log = 0;
};

template <class V>
struct machine {
  std::vector<std::atomic<unsigned char>> ran;
  std::deque<std::atomic<int>> contributors;  // at work on a name of the whole program's
  std::mutex door;                            // of the next two
  std::set<const void*> commuted;  // what commuting tasks are at work on; versions of an object count apart
  std::list<baton> batons;
  std::atomic<std::uint64_t> together{0}, intruders{0};
  std::atomic<int> wrong_tokens{0}, wrong_names{0};
  std::deque<std::uint64_t> results;  // by name; each written by one task, read by its parent after a sync
  std::array<counter, counters> sums;
};

}  // namespace property
