// SPDX-License-Identifier: BSL-1.0
// What a graph learns of the length of its tasks.
#pragma once

#include <weft/task/frame.hpp>
#include <weft/task/node_batch.hpp>
#include <weft/task/steal_cooldown.hpp>

#include <algorithm>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

/// Estimates the length of a graph's tasks from batches of them: how many a worker takes at once, and whether
/// thieves leave them to the owner. *Thread safety*: under the lock of the graph.
class granularity_estimator {
 public:
  using clock = deadline::clock;

  void reset() noexcept {
    began_ = {};
    batch_ = 1;
    body_ = node_batch::unknown;
    longer_ = false;
    tiny_in_a_row_ = thieves_tiny_in_a_row_ = 0;
    window_ = {};
  }
  /// The length of a batch's tasks, compared with granularity::tiny_task.
  enum class length : std::uint8_t { tiny, medium, worthwhile };

  /// Learns from a batch whose last task ended at `end`. How long tasks take is judged by the body of the
  /// first one, if that was measured: the rest of a batch of tiny tasks is communication, whose price grows
  /// with the number of workers that have come in vain.
  length learn(const node_batch& batch, clock::time_point end, bool by_owner, std::size_t takers) noexcept {
    using namespace granularity;
    const auto start = batch.start;
    const std::uint32_t count = batch.done();
    const auto queues = static_cast<int>(std::max<std::size_t>(takers, 1));
    const auto took = end - start;
    if (began_ == clock::time_point()) began_ = start;
    const auto of_taken = took * batch.taken / count;
    if (of_taken < queues * short_batch && batch_ < largest_batch)
      batch_ *= 2;
    else if (of_taken > queues * long_batch && batch_ > 1)
      batch_ /= 2;
    if (loses(start, end, count, by_owner)) {
      tiny_in_a_row_ = std::max(tiny_in_a_row_, 2 * granularity::large_frame);
      return length::tiny;
    }
    const bool mixed = count > 1 && took > mixed_batch && took > 3 * tiny_task * count;
    const auto task = batch.first_took < clock::duration()
                          ? took / count
                          : average_with(mixed      ? took / count
                                         : by_owner ? batch.first_took
                                                    : batch.first_took - transfer);
    const bool tiny = task < tiny_task;
    if (!by_owner) thieves_tiny_in_a_row_ = tiny ? thieves_tiny_in_a_row_ + count : 0;
    if (tiny) {
      longer_ = false;
      if (by_owner) tiny_in_a_row_ += count;
      return length::tiny;
    }
    longer_ = true;
    if (task <= granularity::worthwhile * tiny_task || took <= short_stay) return length::medium;
    tiny_in_a_row_ = 0;
    return length::worthwhile;
  }
  /// Whether the last tasks were known not to be tiny: worth keeping, and visiting ahead of.
  bool longer() const noexcept { return longer_; }
  /// Whether bodies take so long that others who have nothing to do should not wait for one.
  bool long_bodies() const noexcept { return body_ > granularity::long_body; }
  /// When the first batch began.
  clock::time_point began() const noexcept { return began_; }
  /// How many ready tasks a worker takes at once.
  std::uint32_t batch() const noexcept { return batch_; }
  /// Whether the last tasks of the owner were tiny, and not just a few.
  bool tiny_throughout() const noexcept { return tiny_in_a_row_ >= granularity::large_frame / 2; }
  /// Whether so many tasks in a row were tiny, of the owner's or of thieves', that further ones should run
  /// inside fork. `nests`: some have children, and the next one may be a whole tree.
  bool all_tiny(bool nests) const noexcept {
    return std::max(tiny_in_a_row_, thieves_tiny_in_a_row_) >= (nests ? 16u : 1u) * granularity::large_frame;
  }

 private:
  /// *Returns*: the average of the bodies measured, with another one. It falls faster than it rises: lines
  /// that travel and interrupts make bodies longer than they are, and nothing makes them shorter.
  clock::duration average_with(clock::duration body) noexcept {
    body = std::clamp<clock::duration>(body, clock::duration(), granularity::long_batch);
    body_ = body_ == node_batch::unknown ? body : body < body_ ? (body_ + body) / 2 : (3 * body_ + body) / 4;
    return body_;
  }
  /// Whether all workers together are hardly faster than the owner would be alone, who needs as long for a
  /// task as he does for those that he executes. Tells at the end of each window of so many of them.
  bool loses(clock::time_point start, clock::time_point end, std::uint32_t count, bool by_owner) noexcept {
    if (window_.owners == 0 && !by_owner) return false;
    if (window_.owners == 0) window_.begin = start;
    window_.all += count;
    if (!by_owner) return false;
    window_.owners += count;
    window_.owners_time += end - start;
    if (window_.owners < granularity::comparison_window) return false;
    const window w = std::exchange(window_, {});
    const auto alone = w.owners_time / w.owners;  // for one task
    return alone < granularity::longest_doubtful && (end - w.begin) / w.all > alone - alone / 16;
  }

  struct window {
    clock::time_point begin{};
    clock::duration owners_time{};
    std::uint32_t owners = 0, all = 0;  // tasks
  };

  window window_;
  clock::time_point began_{};
  std::uint32_t batch_ = 1;
  clock::duration body_ = node_batch::unknown;
  bool longer_ = false;              // what longer() says
  std::uint32_t tiny_in_a_row_ = 0;  // tasks of the owner
  std::uint32_t thieves_tiny_in_a_row_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
