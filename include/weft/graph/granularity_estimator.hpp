// SPDX-License-Identifier: BSL-1.0
// What a graph learns of the length of its tasks.
#pragma once

#include <weft/task/frame.hpp>
#include <weft/task/steal_cooldown.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Estimates the length of a graph's tasks from batches of them: how many a worker takes at once, and whether
/// thieves leave them to the owner. *Thread safety*: under the lock of the graph; tiny_until() is a hint for
/// anybody.
class granularity_estimator {
 public:
  using clock = deadline::clock;

  void reset() noexcept {
    batch_ = 1;
    tiny_in_a_row_ = 0;
    tiny_until_.clear();
  }
  /// The length of a batch's tasks, compared with granularity::tiny_task.
  enum class length : std::uint8_t { tiny, medium, worthwhile };

  /// Learns from a batch of `count` tasks that was executed from `start` to `end`.
  length learn(clock::time_point start, clock::time_point end, std::uint32_t count, bool by_owner) noexcept {
    using namespace granularity;
    const auto took = std::max(end - start - (by_owner ? 0 : count) * transfer, clock::duration());
    if (took < short_batch && batch_ < largest_batch)
      batch_ *= 2;
    else if (took > long_batch && batch_ > 1)
      batch_ /= 2;
    if (took < tiny_task * count) {
      if (by_owner) tiny_in_a_row_ += count;
      return length::tiny;
    }
    if (took <= granularity::worthwhile * tiny_task * count || took <= short_theft) return length::medium;
    tiny_until_.clear();
    tiny_in_a_row_ = 0;
    return length::worthwhile;
  }
  /// Begins or prolongs the time in which thieves leave the tasks to the owner.
  void leave_until(clock::time_point t) noexcept { tiny_until_.set(t); }
  /// How many ready tasks a worker takes at once.
  std::uint32_t batch() const noexcept { return batch_; }
  /// Until when thieves leave the tasks to the owner.
  const deadline& tiny_until() const noexcept { return tiny_until_; }
  /// Whether the last tasks of the owner were tiny, and not just a few.
  bool tiny_throughout() const noexcept { return tiny_in_a_row_ >= granularity::large_frame / 2; }

 private:
  std::uint32_t batch_ = 1;
  std::uint32_t tiny_in_a_row_ = 0;  // tasks of the owner
  deadline tiny_until_;
};

}  // namespace weft::inline WEFT_ABI::sched
