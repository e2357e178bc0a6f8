// SPDX-License-Identifier: BSL-1.0
// Whom a process of a cluster asks for tasks, and how soon again.
#pragma once

#include <weft/cluster/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// The machine of each process. *Throws*: std::bad_alloc.
inline std::vector<int> machines_of(const transport& by) {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(by.size()));
  for (int i = 0; i < by.size(); ++i) all.push_back(by.machine_of(i));
  return all;
}

/// The other processes, as one that has no work sees them. Where many have tasks, as in a search of a tree,
/// any of them is as good, and who asks at random finds larger ones and spares the process that began. Where
/// one has them all, as in a loop, it must be asked again. So the one that has given a task is asked again
/// the more often, the more often others had none. Where processes are on several machines, those of the same
/// machine come first: some of them are asked before any process is.
class victims {
 public:
  /// `machines`: that of each process. *Throws*: std::bad_alloc.
  victims(int rank, const std::vector<int>& machines)
      : rank_(rank),
        others_(static_cast<int>(machines.size()) - 1),
        random_(static_cast<std::uint64_t>(rank) * 0x9E3779B97F4A7C15ull + 1) {
    for (std::size_t i = 0; i < machines.size(); ++i)
      if (static_cast<int>(i) != rank && machines[i] == machines[static_cast<std::size_t>(rank)])
        near_.push_back(number_(static_cast<int>(i)));
    if (near_.size() == static_cast<std::size_t>(others_)) near_.clear();
  }

  /// Nothing was asked in vain yet in this run.
  void begin() noexcept {
    misses_ = 0;
    told_ = -1;
  }
  /// Whom to ask now. *Requires*: there are others.
  int next() noexcept {
    const bool told = told_ >= 0;
    if (told) giver_ = std::exchange(told_, -1);
    giver_asked_ = told || (giver_ >= 0 && prefers_giver_());
    if (giver_asked_)
      last_ = giver_;
    else if (misses_ < std::min(static_cast<int>(near_.size()), near_first))
      last_ = near_[next_random_() % near_.size()];
    else
      last_ = static_cast<int>(next_random_() % static_cast<unsigned>(others_));
    return last_ < rank_ ? last_ : last_ + 1;
  }
  /// The last one has given a task.
  void has_given() noexcept {
    if (!giver_asked_) luck_ += (certain - luck_) / 8;
    giver_ = last_;
    misses_ = 0;
  }
  /// A process that was not asked now has given one.
  void has_given(int process) noexcept {
    giver_ = number_(process);
    misses_ = 0;
  }
  /// This process may have some: it is asked next.
  void hear_of(int process) noexcept { told_ = number_(process); }
  /// It had nothing. *Returns*: how long to wait before the next request: not at all at first, then twice as
  /// long each time. Where there are a thousand processes, most have nothing at the beginning and at the end
  /// of a run: to ask all of them without a pause would be most of the messages.
  std::chrono::microseconds has_nothing(std::chrono::microseconds at_most) noexcept {
    if (!giver_asked_ && misses_ == 0) luck_ -= luck_ / 8;
    ++misses_;
    if (!many_in_vain()) return {};
    return std::min(first_pause * (1 << std::min(misses_ - in_a_row_(), 16)), at_most);
  }
  /// Whether so many requests in a row were in vain that there is little to be had.
  bool many_in_vain() const noexcept { return misses_ >= in_a_row_(); }

 private:
  static constexpr int certain = 256, least = 16;
  static constexpr int near_first = 3;  // so many requests in vain before others are asked
  static constexpr std::chrono::microseconds first_pause{50};

  int in_a_row_() const noexcept { return std::clamp(others_, 1, 8); }
  int number_(int process) const noexcept { return process - (process > rank_); }

  bool prefers_giver_() noexcept {
    if (misses_ == 0) return static_cast<int>(next_random_() % certain) >= std::max(luck_, least);
    return misses_ == 1 && !giver_asked_;
  }
  std::uint64_t next_random_() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    return random_ ^= random_ << 17;
  }

  int rank_, others_;
  std::vector<int> near_;  // the others of this machine, if there are more machines
  std::uint64_t random_;
  int last_ = -1, giver_ = -1;  // not counting this process
  int told_ = -1;               // the same: who may have tasks, as another process has said
  bool giver_asked_ = false;    // the last time
  int luck_ = certain / 2;      // how often one chosen at random had a task, while there were some
  int misses_ = 0;              // answers without a task in a row
};

}  // namespace weft::inline WEFT_ABI::remote
