// SPDX-License-Identifier: BSL-1.0
// When process 0 orders checkpoints of a step, and how far the one under way is.
#pragma once

#include <weft/cluster/detail/step_checkpoints.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace weft::inline WEFT_ABI::remote {

/// Counts iterations from the beginning of the first of all jobs. *Thread safety*: one thread.
class checkpoint_schedule {
 public:
  using clock = base::clock;

  /// `files`: of this process; nothing if there are no checkpoints.
  checkpoint_schedule(std::optional<step_checkpoints>& files, double seconds, unsigned processes) noexcept
      : files_(files), seconds_(seconds), processes_(processes) {}

  /// The values of a checkpoint are in the objects.
  void resume(const checkpoint& c) noexcept {
    done_ = ended_ = saved_ = c.done;
    runs_ = false;
  }
  /// The objects may have any values.
  void lose() noexcept { runs_ = true; }
  /// What a run has done that ended by an exception does not count, nor does its checkpoint under way.
  void begin_run() noexcept {
    if (std::exchange(runs_, true)) drop();
    done_ = ended_;
  }
  void end_run() noexcept {
    before_ = std::exchange(ended_, done_);
    runs_ = false;
  }
  /// The run that has ended has thrown after all.
  void take_back_run() noexcept {
    ended_ = before_;
    lose();
  }
  void begin_round(std::uint64_t iterations) noexcept {
    round_ = iterations;
    round_began_ = clock::now();
  }
  void end_round() noexcept {
    if (round_ == 0) return;
    done_ += round_;
    iteration_ = since_(round_began_) / static_cast<double>(std::exchange(round_, 0));
  }
  /// How many iterations a round may have, so that checkpoints are not late.
  std::uint64_t longest_round() const noexcept {
    constexpr double rounds = 3;  // from one checkpoint to the next
    if (!files_ || !(iteration_ > 0)) return ~std::uint64_t{0};
    const double n = seconds_ / rounds / iteration_;
    return n >= 1 ? static_cast<std::uint64_t>(std::min(n, 1e9)) : 1;  // 1 also for what is not a number
  }
  /// *Returns*: the number of the checkpoint that all processes are to write now, before the next round; 0 if
  /// none is due.
  std::uint64_t order() {
    if (!files_ || under_way_ || done_ == saved_ || since_(ordered_) < seconds_) return 0;
    return order_();
  }
  /// The same between runs, due or not. *Throws*: weft::error if the last run has thrown.
  std::uint64_t order_now() {
    if (runs_) throw error("weft: the values of a partitioned step that has thrown cannot be saved");
    drop();
    return done_ == saved_ ? 0 : order_();
  }
  /// A process has written its part, of the checkpoint of this number.
  void note(std::size_t process, std::uint64_t number, const checkpoint_part& part) {
    if (!under_way_ || under_way_->number != number) return;
    under_way_->parts[process] = part;
    if (--missing_ == 0) files_->publish(*under_way_);
  }
  /// There will be no checkpoint of that number, unless it is being named: then it is waited for.
  void drop() noexcept {
    try {
      advance(true);
    } catch (...) {  // nobody needs it
    }
    under_way_.reset();
  }
  /// Takes note of a checkpoint that is whole. `wait`: for its name, if all parts are written. *Throws*:
  /// std::system_error; then none is under way any more.
  void advance(bool wait) {
    if (!under_way_ || missing_ != 0) return;
    try {
      if (!files_->take_published(wait)) return;
    } catch (...) {
      under_way_.reset();
      throw;
    }
    saved_ = under_way_->done;
    under_way_.reset();
  }

 private:
  std::uint64_t order_() {
    ordered_ = clock::now();
    under_way_ = checkpoint{io::random_number(), done_, std::vector<checkpoint_part>(processes_)};
    missing_ = processes_;
    return under_way_->number;
  }
  static double since_(clock::time_point t) noexcept {
    return std::chrono::duration<double>(clock::now() - t).count();
  }

  std::optional<step_checkpoints>& files_;
  const double seconds_;
  const unsigned processes_;
  std::uint64_t done_ = 0, ended_ = 0;  // now, and when the last run ended that did not throw,
  std::uint64_t before_ = 0;            // and the one before
  std::uint64_t saved_ = 0;             // in the last checkpoint
  bool runs_ = false;                   // or has thrown
  std::uint64_t round_ = 0;
  clock::time_point round_began_{}, ordered_ = clock::now();
  double iteration_ = 0;  // how long one takes, in seconds
  std::optional<checkpoint> under_way_;
  unsigned missing_ = 0;  // parts of it
};

}  // namespace weft::inline WEFT_ABI::remote
