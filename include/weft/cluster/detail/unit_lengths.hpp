// SPDX-License-Identifier: BSL-1.0
// Which tasks are worth a record of their own: how long they take, level by level, and what records cost.
#pragma once

#include <weft/base/platform.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace weft::inline WEFT_ABI::remote {

/// The level of a task is the number of units around it, below the root of the run. Where the tasks of a
/// level are short, their parents are recorded as a whole, and run at full speed.
///
/// *Thread safety*: any thread; all numbers are hints, so relaxed accesses suffice.
class unit_lengths {
 public:
  using clock = base::clock;
  using duration = std::chrono::nanoseconds;

  static constexpr unsigned levels = 64;
  /// Tasks that take less are not recorded.
  static constexpr std::chrono::microseconds short_task{WEFT_RECORDED_US};
  /// After how many tasks of a level its mean is believed.
  static constexpr unsigned enough = 16;
  /// At most this part of the processor time is spent on records, beside what is there at the beginning.
  static constexpr unsigned share = 100;
  static constexpr std::chrono::milliseconds start{2};

  /// A run begins. *Requires*: no task is running.
  void begin(unsigned workers, clock::time_point now) noexcept {
    for (level& l : all_) {
      l.count.store(0, base::memory_order_relaxed);
      l.nanoseconds.store(0, base::memory_order_relaxed);
    }
    spent_.store(0, base::memory_order_relaxed);
    workers_ = workers;
    begun_ = now;
  }
  /// Whether tasks of the level may be units of their own, as far as their length is known.
  bool are_long(unsigned of) const noexcept {
    if (of >= levels) return false;
    const std::uint64_t n = all_[of].count.load(base::memory_order_relaxed);
    if (n < enough) return true;
    constexpr auto least = static_cast<std::uint64_t>(duration(short_task).count());
    return all_[of].nanoseconds.load(base::memory_order_relaxed) / n >= least;
  }
  /// Whether there is time for another record.
  bool can_afford(clock::time_point now) const noexcept {
    if (short_task.count() == 0) return true;
    const auto run = std::chrono::duration_cast<duration>(now - begun_).count() * workers_;
    return spent_.load(base::memory_order_relaxed) <= run / share + duration(start).count();
  }
  /// A task of the level has taken so long, and its record so long.
  void note(unsigned of, duration took, duration record) noexcept {
    spent_.fetch_add(record.count(), base::memory_order_relaxed);
    if (of >= levels) return;
    all_[of].nanoseconds.fetch_add(static_cast<std::uint64_t>(took.count()), base::memory_order_relaxed);
    all_[of].count.fetch_add(1, base::memory_order_relaxed);
  }
  /// Short levels are tried again, with some tasks each. To be called a few times in each interval.
  void look_again() noexcept {
    constexpr unsigned tries = 4;
    for (level& l : all_) {
      const std::uint64_t n = l.count.load(base::memory_order_relaxed);
      if (n < enough) continue;
      const std::uint64_t mean = l.nanoseconds.load(base::memory_order_relaxed) / n;
      l.nanoseconds.store(mean * (enough - tries), base::memory_order_relaxed);
      l.count.store(enough - tries, base::memory_order_relaxed);
    }
  }

 private:
  struct level {
    base::atomic<std::uint64_t> count{0}, nanoseconds{0};
  };
  std::array<level, levels> all_;
  base::atomic<std::int64_t> spent_{0};
  std::int64_t workers_ = 1;   // constant during a run,
  clock::time_point begun_{};  // and this
};

}  // namespace weft::inline WEFT_ABI::remote
