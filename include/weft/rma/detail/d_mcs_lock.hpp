// SPDX-License-Identifier: BSL-1.0
// Locks that are queues of processes: each waits at a word of its own.
#pragma once

#include <weft/rma/detail/lock_steps.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// A queue for each target; exclusive locks only. First come, first served.
/// *Source*: Mellor-Crummey, Scott 1991; with processes in the place of addresses: Schmid, Besta, Hoefler
/// 2016.
struct d_mcs_lock {
  /// Words of a process: the end of its queue, and its place in the queue of each target.
  static constexpr std::uint32_t words(int processes) noexcept {
    return 1 + 2 * static_cast<std::uint32_t>(processes);
  }
  static constexpr std::uint32_t tail = 0;
  static constexpr std::uint32_t next(process target) noexcept {
    return 1 + 2 * static_cast<std::uint32_t>(target);
  }
  static constexpr std::uint32_t blocked(process target) noexcept { return next(target) + 1; }

  /// Locks a target exclusively.
  class exclusive {
   public:
    exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case prepare_next:
          w.store(self, next(target_), 0);
          at_ = enter;
          return progress::more;
        case enter: {
          const std::uint64_t before = w.exchange(target_, tail, link_to(self));
          if (before == 0) return progress::done;
          before_ = linked(before);
          at_ = prepare_blocked;
          return progress::more;
        }
        case prepare_blocked:  // before the link: who finds that clears the word
          w.store(self, blocked(target_), 1);
          at_ = link;
          return progress::more;
        case link:
          w.store(before_, next(target_), link_to(self));
          at_ = wait;
          return progress::more;
        default:
          return w.load(self, blocked(target_)) == 0 ? progress::done : progress::wait;
      }
    }

   private:
    enum place : std::int32_t { prepare_next, enter, prepare_blocked, link, wait };
    process target_, before_ = -1;
    place at_ = prepare_next;
  };
  /// Locks a target exclusively if nobody has it.
  class try_exclusive {
   public:
    try_exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      if (prepared_ == 0) {
        w.store(w.self(), next(target_), 0);
        prepared_ = 1;
        return progress::more;
      }
      return w.compare_exchange(target_, tail, 0, link_to(w.self())) == 0 ? progress::done : progress::retry;
    }

   private:
    process target_;
    std::int32_t prepared_ = 0;
  };
  /// Gives an exclusive lock back.
  class exclusive_release {
   public:
    exclusive_release(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case look:
        case wait: {
          const std::uint64_t after = w.load(self, next(target_));
          if (after != 0) {
            after_ = linked(after);
            at_ = hand_over;
            return progress::more;
          }
          if (at_ == wait) return progress::wait;
          at_ = leave;
          return progress::more;
        }
        case leave:
          if (w.compare_exchange(target_, tail, link_to(self), 0) == link_to(self)) return progress::done;
          at_ = wait;  // somebody is about to link itself
          return progress::more;
        default:
          w.store(after_, blocked(target_), 0);
          return progress::done;
      }
    }

   private:
    enum place : std::int32_t { look, leave, wait, hand_over };
    process target_, after_ = -1;
    place at_ = look;
  };
};

}  // namespace weft::inline WEFT_ABI::rma::detail
