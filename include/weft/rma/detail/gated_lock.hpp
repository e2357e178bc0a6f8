// SPDX-License-Identifier: BSL-1.0
// Locks of single targets that get a lock of all.
#pragma once

#include <weft/rma/detail/lock_steps.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// A lock whose targets can all be locked for reading at once, by a word of the window at process 0: it
/// counts writers that hold or wait for a lock (low half), and those that have locked all (high half). Who
/// locks all gives way to writers. It costs a writer two operations more.
/// *Source*: Christgau, Schnor 2016, section 7.2, asks for such a state and has none.
template <class Lock>
struct gated_lock : Lock {
  static constexpr std::uint64_t all = enter_all<Lock::window_word>::one;

  /// A writer comes, and waits until nobody has locked all.
  class enter {
   public:
    explicit enter(const lock_context& c) noexcept : at_(c.holds_another ? skip : count) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      if (at_ == skip) return progress::done;
      const std::uint64_t now =
          at_ == count ? w.fetch_add(0, Lock::window_word, 1) : w.load(0, Lock::window_word);
      at_ = wait;
      return now < all ? progress::done : progress::wait;
    }

   private:
    enum place : std::int32_t { count, wait, skip };
    place at_;
  };
  /// A writer goes.
  class leave {
   public:
    explicit leave(const lock_context& c) noexcept : stays_(c.holds_another) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      if (stays_ == 0) w.fetch_add(0, Lock::window_word, std::uint64_t{0} - 1);
      return progress::done;
    }

   private:
    std::int32_t stays_;
  };

  struct exclusive : in_order<enter, typename Lock::exclusive> {
    exclusive(process target, const lock_context& c) noexcept
        : in_order<enter, typename Lock::exclusive>(enter(c), typename Lock::exclusive(target, c)) {}
  };
  struct exclusive_release : in_order<typename Lock::exclusive_release, leave> {
    exclusive_release(process target, const lock_context& c) noexcept
        : in_order<typename Lock::exclusive_release, leave>(typename Lock::exclusive_release(target, c),
                                                            leave(c)) {}
  };
  /// Tries once: who has locked all, or has the target, makes it fail.
  class try_exclusive {
   public:
    try_exclusive(process target, const lock_context& c) noexcept
        : lock_(target, c), leave_(c), at_(c.holds_another ? lock : count) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      switch (at_) {
        case count:
          at_ = w.fetch_add(0, Lock::window_word, 1) < all ? lock : undo;
          return progress::more;
        case lock: {
          const progress p = lock_.step(w);
          if (p != progress::retry) return p;
          at_ = undo;
          return progress::more;
        }
        default:
          leave_.step(w);
          return progress::retry;
      }
    }
    std::uint64_t token() const noexcept { return token_of(lock_); }

   private:
    enum place : std::int32_t { count, lock, undo };
    typename Lock::try_exclusive lock_;
    leave leave_;
    place at_;
  };
  /// Locks all targets for reading.
  using shared_all = enter_all<Lock::window_word>;
  /// Tries that once.
  using try_shared_all = shared_all;
  /// Gives the lock on all targets back.
  using shared_all_release = leave_all<Lock::window_word>;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
