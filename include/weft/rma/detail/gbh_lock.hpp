// SPDX-License-Identifier: BSL-1.0
// Locks that are counters: a word of the window for lock_all, and a word of each target.
#pragma once

#include <weft/rma/detail/lock_steps.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// The word of the window, at process 0, counts processes that hold or try exclusive locks (low half) and
/// those that have locked all (high half). The word of a target: 1 while it is locked exclusively, and 2 for
/// each shared lock. An exclusive lock is released by a subtraction: a store would wipe out the shared ones
/// that are being tried. *Source*: Gerstenberger, Besta, Hoefler 2013; Christgau, Schnor 2016, section 4.2.
struct gbh_lock {
  /// Words of a process.
  static constexpr std::uint32_t words(int) noexcept { return 2; }
  static constexpr std::uint32_t window_word = 0;  ///< of process 0
  static constexpr std::uint32_t target_word = 1;  ///< of each target
  static constexpr std::uint64_t all = enter_all<window_word>::one;

  /// Locks a target exclusively. Who has an exclusive lock already has kept others from locking all.
  class exclusive {
   public:
    exclusive(process target, const lock_context& c) noexcept
        : target_(target), skips_(c.holds_another), at_(skips_ != 0 ? lock : enter) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      switch (at_) {
        case enter:
          at_ = w.fetch_add(0, window_word, 1) < all ? lock : leave;
          return progress::more;
        case lock:
          if (w.compare_exchange(target_, target_word, 0, 1) == 0) return progress::done;
          if (skips_ != 0) return progress::retry;
          at_ = leave;
          return progress::more;
        default:
          w.fetch_add(0, window_word, std::uint64_t{0} - 1);
          at_ = enter;
          return progress::retry;
      }
    }

   private:
    enum place : std::int32_t { enter, lock, leave };
    process target_;
    std::int32_t skips_;
    place at_;
  };
  /// Tries that once: nothing is left behind at the first failure.
  using try_exclusive = exclusive;
  /// Gives an exclusive lock back.
  class exclusive_release {
   public:
    exclusive_release(process target, const lock_context& c) noexcept
        : target_(target), stays_(c.holds_another) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      if (unlocked_ == 0) {
        w.fetch_add(target_, target_word, std::uint64_t{0} - 1);
        unlocked_ = 1;
        return stays_ != 0 ? progress::done : progress::more;
      }
      w.fetch_add(0, window_word, std::uint64_t{0} - 1);
      return progress::done;
    }

   private:
    process target_;
    std::int32_t stays_, unlocked_ = 0;
  };
  /// Locks a target for reading.
  class shared {
   public:
    shared(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      if (undo_ == 0) {
        undo_ = static_cast<std::int32_t>(w.fetch_add(target_, target_word, 2) & 1);
        return undo_ != 0 ? progress::more : progress::done;
      }
      w.fetch_add(target_, target_word, std::uint64_t{0} - 2);
      undo_ = 0;
      return progress::retry;
    }

   private:
    process target_;
    std::int32_t undo_ = 0;
  };
  /// Tries that once.
  using try_shared = shared;
  /// Gives a shared lock back.
  class shared_release {
   public:
    shared_release(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      w.fetch_add(target_, target_word, std::uint64_t{0} - 2);
      return progress::done;
    }

   private:
    process target_;
  };
  /// Locks all targets for reading: no new exclusive lock begins, and those that are held end.
  class shared_all {
   public:
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const std::uint64_t now = entered_ != 0 ? w.load(0, window_word) : w.fetch_add(0, window_word, all);
      entered_ = 1;
      return now % all == 0 ? progress::done : progress::wait;
    }

   private:
    std::int32_t entered_ = 0;
  };
  /// Locks all targets for reading if no exclusive lock is held or tried.
  using try_shared_all = enter_all<window_word>;
  /// Gives the lock on all targets back.
  using shared_all_release = leave_all<window_word>;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
