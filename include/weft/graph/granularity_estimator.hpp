// SPDX-License-Identifier: BSL-1.0
// What a graph learns of the length of its tasks.
#pragma once

#include <weft/task/frame.hpp>
#include <weft/task/steal_cooldown.hpp>

namespace weft::inline WEFT_ABI::sched {

/// Workers take more tasks at once where they are short, and thieves leave alone what is shorter than its way
/// from one cache to another. *Thread safety*: under the lock of the graph; tiny_until() is a hint for
/// anybody.
class granularity_estimator {
 public:
  using clock = deadline::clock;

  void reset() noexcept {
    batch_ = 1;
    tiny_in_a_row_ = 0;
    tiny_until_.clear();
  }
  /// What a batch of tasks was like, for those who would have to bring them to another cache.
  enum class fork_action : std::uint8_t { tiny, fair, worth_it };

  /// Learns from a batch of `count` tasks that was executed from `start` to `end`.
  fork_action judge(clock::time_point start, clock::time_point end, std::uint32_t count,
                    bool by_owner) noexcept {
    constexpr std::chrono::nanoseconds short_batch(5'000), long_batch(20'000);
    const auto took = end - start;
    if (took < short_batch && batch_ < 64)
      batch_ *= 2;
    else if (took > long_batch && batch_ > 1)
      batch_ /= 2;
    if (took < tiny_task * count) {
      tiny_until_.set(end + first_rest);
      if (by_owner) tiny_in_a_row_ += count;
      return fork_action::tiny;
    }
    if (took <= 2 * tiny_task * count) return fork_action::fair;
    tiny_until_.clear();
    tiny_in_a_row_ = 0;
    return fork_action::worth_it;
  }
  /// How many ready tasks a worker takes at once.
  std::uint32_t batch() const noexcept { return batch_; }
  /// When thieves look again at what is too short for them.
  const deadline& tiny_until() const noexcept { return tiny_until_; }
  /// Whether the owner has met tiny tasks only, and not just a few.
  bool tiny_throughout() const noexcept { return tiny_in_a_row_ >= large_frame / 2; }

 private:
  std::uint32_t batch_ = 1;
  std::uint32_t tiny_in_a_row_ = 0;  // tasks of the owner
  deadline tiny_until_;
};

}  // namespace weft::inline WEFT_ABI::sched
