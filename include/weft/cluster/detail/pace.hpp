// SPDX-License-Identifier: BSL-1.0
// When a process asks others for tasks, and for how many.
#pragma once

#include <weft/base/platform.hpp>

#include <algorithm>
#include <chrono>

namespace weft::inline WEFT_ABI::remote {

/// Learns how long guests take and how long an answer takes. Several short tasks are asked for at once, and
/// the next ones before these have ended, so that neither messages nor the way take most of the time; but not
/// more than other processes could have done meanwhile.
class pace {
 public:
  using duration = base::clock::duration;
  using time_point = base::clock::time_point;

  /// The work that is asked for at once lies between these.
  static constexpr std::chrono::microseconds least_work{200}, most_work{1000};
  /// Only guests longer than this are asked for ahead: others are done sooner by the process that forks them.
  static constexpr std::chrono::microseconds long_enough{5};
  static constexpr unsigned most_at_once = 256;

  /// A run begins: what is known of tasks is forgotten.
  void begin() noexcept {
    length_ = delivery_ = {};
    last_number_ = 0;
    fresh_ = false;
  }
  /// So many guests have ended, each so long after the one before.
  void ended(unsigned count, duration all, time_point now) noexcept {
    fresh_ = true;
    began_ = now;
    // One that was interrupted says little of the others.
    const duration most = length_ == duration{} ? duration::max() : 4 * length_ + long_enough;
    const duration each = std::min<duration>(all / count, most);
    length_ = length_ == duration{} ? each : length_ + (each - length_) * std::min(count, 8u) / 16;
  }
  void asked(time_point now, bool ahead) noexcept {
    asked_at_ = now;
    ahead_ = ahead;
    fresh_ = fresh_ && !ahead;
  }
  /// `some`: tasks have come with it.
  void answered(time_point now, bool some) noexcept {
    const duration took = now - asked_at_;
    way_ += (took - way_) / 8;
    if (!some) return;
    delivery_ += delivery_ == duration{} ? took : (took - delivery_) / 8;
    if (!ahead_) began_ = now;
  }

  /// Tasks have come while a worker had no guest, without a request that was to be answered at once.
  void came(time_point now) noexcept { began_ = now; }

  /// How many tasks to ask for. At first one, then at most four times as many as before.
  unsigned number() noexcept {
    const auto most = length_ == duration{} ? 1 : std::max<duration::rep>(work_() / length_, 1);
    return last_number_ = static_cast<unsigned>(
               std::min<duration::rep>(most, std::min(4 * last_number_ + (last_number_ == 0), most_at_once)));
  }
  /// Whether to ask while all workers have something to do and so many guests wait for one. Not again before
  /// one has ended: who gives back what waits behind a long one would be the first to ask for it again.
  ///
  /// While a guest of more than a millisecond runs, the next one is asked for so that it comes with its
  /// values when that one ends, if they take a part of its time worth the while.
  bool asks_ahead(unsigned waiting, time_point now) const noexcept {
    if (!fresh_ || length_ < long_enough) return false;
    if (length_ < most_work) return 2 * waiting * length_ < work_();
    return waiting == 0 && 32 * delivery_ >= length_ && now - began_ + delivery_ + delivery_ / 4 >= length_;
  }
  /// For how long results may be kept so that others go with them.
  duration patience() const noexcept { return work_() / 2; }
  /// What has come ahead and has waited for so long goes back to where it is from.
  duration longest_wait() const noexcept {
    return std::max<duration>(2 * std::max(way_, delivery_), 2 * most_work);
  }
  /// How long to wait before asking ahead again, if that was in vain.
  duration pause() const noexcept { return std::max<duration>(way_, std::chrono::microseconds(50)); }

 private:
  duration work_() const noexcept { return std::clamp<duration>(8 * way_, least_work, most_work); }

  duration length_{};                            // of a guest; zero: not known
  duration way_{std::chrono::microseconds(50)};  // from a request to its answer
  duration delivery_{};                          // the same where tasks have come with it; zero: not known
  time_point asked_at_{}, began_{};              // the last request; the guest that runs, about
  bool ahead_ = false;                           // that request was sent while guests had all workers
  unsigned last_number_ = 0;
  bool fresh_ = false;  // a guest has ended since a process was asked ahead
};

}  // namespace weft::inline WEFT_ABI::remote
