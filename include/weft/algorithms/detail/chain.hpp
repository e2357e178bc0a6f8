// SPDX-License-Identifier: BSL-1.0
// Adjacent parts of a range, each of which needs what all before it amount to: running sums, places in an
// output.
#pragma once

#include <weft/algorithms/detail/pace.hpp>
#include <weft/algorithms/detail/team.hpp>
#include <weft/base/lock.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

namespace weft::inline WEFT_ABI::algorithms {

/// Processes [0, n) in parts with a Step, which has
///  - `state`: what all before a part amounts to; can be copied,
///  - `summary`: what one part amounts to,
///  - `summary look(first, last)`: of a part before which something is not known yet,
///  - `state add(const state&, const summary&)`: what all up to the end of the part amounts to,
///  - `state process(first, last, const state&)`: does a part, without a look before; returns the same,
///  - `void finish(first, last, const state&, const summary&)`: does a part after a look.
///
/// A worker takes the first part that nobody has begun. If another worker is still at what is before, it only
/// looks, and finishes the part when the state before is known. So alone it does all in one pass, and
/// several finish parts that are still in their caches. An exception in look() or add() means only that the
/// part waits for its turn: they compute what the serial algorithm does not.
///
/// Who may touch it when:
///  1. A part in stage `taken`, and ahead_ while folding_, belong to the worker that has set it so.
///  2. All else belongs to mutex_.
template <class Step>
class chain {
 public:
  using state = typename Step::state;

  chain(std::size_t n, state initial, const Step& step) : step_(step), n_(n), ahead_(std::move(initial)) {}

  /// Processes all. *Returns*: what all amounts to. *Throws*: what the step throws for the first part;
  /// cancelled.
  state run(const char* name) {
    run_and_wait(name, [this] { work_(); });
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(ahead_);
  }

 private:
  enum class stage : unsigned char { taken, seen, unseen, ready };
  struct part {
    std::size_t number, first, last;
    stage is = stage::taken;
    std::optional<typename Step::summary> found = std::nullopt;
    std::optional<state> before = std::nullopt;
  };
  using lock = std::unique_lock<base::spin_lock>;

  /// Works until there is nothing that could begin now; whoever makes it possible goes on with it.
  void work_() {
    sched::strand& s = sched::current();
    pace speed;
    std::size_t own = 0;  // the part that is in this worker's cache
    lock hold(mutex_);
    for (;;) {
      hold.unlock();
      if (sched::look(s)) throw cancelled();
      hold.lock();
      if (part* const ready = take_ready_(own)) {
        finish_(*ready, hold);
      } else if (part* const turn = take_unseen_()) {
        process_(*turn, hold);
      } else if (!thrown_ && begun_ != n_) {
        part& p = begin_(speed);
        own = p.number;
        const bool direct = p.number == folded_ && !folding_;
        if (direct)
          process_(p, hold);
        else
          look_(p, hold);
        speed.note();
      } else {
        --helpers_;
        return;
      }
      fold_(hold);
      if (speed.known() && (begun_ != n_ || ready_.size() > 1) && helpers_ < workers()) {
        ++helpers_;
        hold.unlock();
        fork([this] { work_(); });
        hold.lock();
      }
    }
  }

  part& begin_(pace& speed) {
    speed.restart();
    const std::size_t fair = (n_ - begun_) / (2 * workers()) + 1;  // so that all end at about the same time
    part& p = parts_.emplace_back(part{parts_.size(), begun_, begun_ + speed.next(fair)});
    begun_ = p.last;
    return p;
  }
  /// The own part if it is ready, else the first.
  part* take_ready_(std::size_t own) {
    auto best = ready_.end();
    for (auto i = ready_.begin(); i != ready_.end(); ++i)
      if (*i < failed_ && (best == ready_.end() || *i == own || (*best != own && *i < *best))) best = i;
    if (best == ready_.end()) return nullptr;
    part& p = parts_[*best];
    ready_.erase(best);
    p.is = stage::taken;
    return &p;
  }
  /// The part at its turn, if a look at it has failed.
  part* take_unseen_() {
    if (thrown_ || folding_ || folded_ == parts_.size() || parts_[folded_].is != stage::unseen)
      return nullptr;
    return &parts_[folded_];
  }

  void look_(part& p, lock& hold) {
    hold.unlock();
    try {
      p.found.emplace(step_.look(p.first, p.last));
    } catch (...) {
      p.found.reset();
    }
    hold.lock();
    p.is = p.found ? stage::seen : stage::unseen;
  }
  void process_(part& p, lock& hold) {
    folding_ = true;
    p.is = stage::taken;
    hold.unlock();
    std::exception_ptr thrown;
    try {
      ahead_ = step_.process(p.first, p.last, ahead_);
    } catch (...) {
      thrown = std::current_exception();
    }
    hold.lock();
    folding_ = false;
    ++folded_;
    if (thrown) fail_(p, std::move(thrown));
  }
  void finish_(part& p, lock& hold) {
    hold.unlock();
    std::exception_ptr thrown;
    try {
      step_.finish(p.first, p.last, *p.before, *p.found);
      p.before.reset();
      p.found.reset();
    } catch (...) {
      thrown = std::current_exception();
    }
    hold.lock();
    if (thrown) fail_(p, std::move(thrown));
  }
  void fail_(const part& p, std::exception_ptr thrown) {
    if (p.number >= failed_) return;
    failed_ = p.number;
    thrown_ = std::move(thrown);
  }
  /// Finds out the state before as many parts as possible.
  void fold_(lock& hold) {
    while (!thrown_ && !folding_ && folded_ != parts_.size() && parts_[folded_].is == stage::seen) {
      part& p = parts_[folded_];
      folding_ = true;
      hold.unlock();
      bool added = true;
      try {
        state next = step_.add(ahead_, *p.found);
        p.before.emplace(std::move(ahead_));
        ahead_ = std::move(next);
      } catch (...) {
        added = false;
      }
      hold.lock();
      folding_ = false;
      p.is = added ? stage::ready : stage::unseen;
      if (added) {
        ++folded_;
        ready_.push_back(p.number);
      }
    }
  }

  const Step& step_;
  const std::size_t n_;
  base::spin_lock mutex_;
  std::deque<part> parts_;          ///< those that have been begun, in order
  std::size_t begun_ = 0;           ///< indices before are in parts
  std::size_t folded_ = 0;          ///< this part is the first whose end is not known to ahead_
  bool folding_ = false;            ///< somebody is about to change that
  state ahead_;                     ///< what all parts before folded_ amount to
  std::vector<std::size_t> ready_;  ///< numbers of parts that can be finished
  unsigned helpers_ = 1;            ///< tasks that work, or will
  std::size_t failed_ = static_cast<std::size_t>(-1);  ///< the first part that has failed
  std::exception_ptr thrown_;                          ///< what it has thrown
};

}  // namespace weft::inline WEFT_ABI::algorithms
