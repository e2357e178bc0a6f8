// SPDX-License-Identifier: BSL-1.0
// How many workers may work on a run at once, and the strands of the run that wait for one of them.
#pragma once

#include <weft/sched/detail/ready_strands.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::sched {

/// The share of a run that is limited to some workers. A strand of the run holds a place from when it is
/// ready, or a thief begins it, until it waits or has ended. Where all places are held, strands that become
/// ready wait here, and whoever gives a place back hands it to the most urgent of them. So a strand that is
/// submitted, kept or executed has its place, and a free place means that nobody waits for one here. A share
/// within another one takes a place of both.
///
/// Never freed before its engine, so full() may be asked through a pointer that is no longer up to date.
///
/// Who may touch it when: `free` is changed under `mutex`, and read by anybody as a hint; the rest belongs to
/// `mutex`, but what begin() sets is constant while a strand of the run lives. Shares are locked from the
/// inside out. *Thread safety*: any thread, any member but begin.
class worker_share {
 public:
  /// For a new run. *Requires*: over() has been true since anybody knew of it.
  void begin(unsigned places, worker_share* outer) noexcept {
    const std::lock_guard hold(mutex_);
    places_ = places;
    outer_ = outer;
    ended_ = false;
    free_.store(places, base::memory_order_relaxed);  // under the lock, here and below
  }
  /// The call of run returns. Workers that have just ended a strand may still hold a place.
  void end() noexcept {
    const std::lock_guard hold(mutex_);
    ended_ = true;
  }
  /// Whether the run has ended, and all places are back.
  bool over() noexcept {
    const std::lock_guard hold(mutex_);
    return ended_ && free_.load(base::memory_order_relaxed) == places_;
  }

  unsigned places() const noexcept { return places_; }
  worker_share* outer() const noexcept { return outer_; }
  /// A hint.
  bool full() const noexcept { return free_.load(base::memory_order_relaxed) == 0; }

  /// Takes a place for a strand that a thief is about to begin. *Returns*: false if there is none.
  WEFT_COLD bool try_take() noexcept {
    const std::lock_guard hold(mutex_);
    if (full() || (outer_ != nullptr && !outer_->try_take())) return false;
    add_(-1);
    return true;
  }
  /// A strand has become ready. *Returns*: whether it has its place; else it waits for one, and belongs to
  /// whoever gives that back.
  WEFT_COLD bool admit(strand& s) noexcept {
    const std::lock_guard hold(mutex_);
    if (full()) {
      waiting_.push_back(s);
      return false;
    }
    add_(-1);
    return outer_ == nullptr || outer_->admit(s);
  }
  /// Gives a place back. *Returns*: a strand that has it now and is to be executed, or null. The share may be
  /// that of another run then.
  strand* give_back() noexcept { return pass_on_(nullptr); }

  /// Calls `see` on each strand that waits here. *Returns*: as ready_strands::each.
  template <class See>
  bool each(unsigned rounds, See see) {
    return waiting_.each(rounds, see);
  }

 private:
  /// The same; `next` has a place in all shares further in, and wants one here.
  WEFT_COLD strand* pass_on_(strand* next) noexcept {
    worker_share* outer = nullptr;
    {
      const std::lock_guard hold(mutex_);
      if (next != nullptr) waiting_.push_back(*next);
      next = waiting_.pop_front();
      if (next == nullptr) add_(1);
      outer = outer_;
    }
    return outer != nullptr ? outer->pass_on_(next) : next;
  }
  void add_(int n) noexcept {
    free_.store(free_.load(base::memory_order_relaxed) + static_cast<unsigned>(n),
                base::memory_order_relaxed);
  }

  base::spin_lock mutex_;
  base::atomic<unsigned> free_{0};
  unsigned places_ = 0;
  worker_share* outer_ = nullptr;
  bool ended_ = true;
  ready_strands waiting_;
};

/// The most workers that a strand of this share may have beside it and itself; null: all of an engine.
inline unsigned workers_of(const worker_share* share, unsigned all) noexcept {
  return share == nullptr ? all : std::min(share->places(), all);
}

}  // namespace weft::inline WEFT_ABI::sched
