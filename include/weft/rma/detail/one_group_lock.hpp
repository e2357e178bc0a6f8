// SPDX-License-Identifier: BSL-1.0
// Locks for readers and writers all of whom are close to each other.
#pragma once

#include <weft/rma/detail/rma_rw_lock.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// As rma_rw_lock, where all processes are one group: one counter of readers and one queue of writers. A
/// writer that finds nobody holds the counter by one operation, without the queue; it gives way to writers in
/// the queue. The first one of the queue closes the counter also while it is held, so that nobody else comes
/// to hold it: it waits for one such writer at most. The words and the readers are those of rma_rw_lock.
struct one_group_lock : rma_rw_lock {
  static constexpr process head = 0;                                 ///< of the group
  static constexpr std::uint64_t without_queue = ~std::uint64_t{0};  ///< a token: the writer is not in it

  /// Locks a target exclusively, as one of the queue. The token: how many of them have had it in a row.
  class queued_exclusive {
   public:
    queued_exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case prepare_next:
          w.store(self, next(target_), 0);
          at_ = prepare_status;
          return progress::more;
        case prepare_status:
          w.store(self, status(target_), waits);
          at_ = enter;
          return progress::more;
        case enter: {
          const std::uint64_t before = w.exchange(head, tail(target_), link_to(self));
          before_ = linked(before);
          at_ = before == 0 ? close : link;
          return progress::more;
        }
        case link:
          w.store(before_, next(target_), link_to(self));
          at_ = wait;
          return progress::more;
        case wait: {
          const std::uint64_t now = w.load(self, status(target_));
          if (now == waits) return progress::wait;
          if (now != goes_up) {
            row_ = now - has_lock;
            return progress::done;
          }
          at_ = close;
          return progress::more;
        }
        case close: {
          const std::uint64_t before = w.fetch_add(head, came(target_), closed);
          came_ = before / reader;
          at_ = before & held ? wait_for_holder : drain;
          return progress::more;
        }
        case wait_for_holder:
          if (w.load(head, came(target_)) & held) return progress::wait;
          at_ = drain;
          return progress::more;
        default:
          return w.load(head, gone(target_)) == came_ ? progress::done : progress::wait;
      }
    }
    std::uint64_t token() const noexcept { return row_; }

   private:
    enum place : std::int32_t {
      prepare_next,
      prepare_status,
      enter,
      link,
      wait,
      close,
      wait_for_holder,
      drain
    };
    process target_, before_ = -1;
    std::uint64_t row_ = 0, came_ = 0;
    place at_ = prepare_next;
    [[maybe_unused]] std::int32_t unused_ = 0;  // no gap: the search compares bytes
  };
  /// Locks a target exclusively if nobody has it or waits for it; without the queue.
  class try_exclusive {
   public:
    try_exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      switch (at_) {
        case look_at_queue:
          if (w.load(head, tail(target_)) != 0) return progress::retry;
          at_ = look;
          return progress::more;
        case look:
          came_ = w.load(head, came(target_));
          if (came_ & (closed | held)) return progress::retry;
          at_ = compare;
          return progress::more;
        case compare:
          if (w.load(head, gone(target_)) != came_ / reader) return progress::retry;
          at_ = hold;
          return progress::more;
        default:
          return w.compare_exchange(head, came(target_), came_, came_ + held) == came_ ? progress::done
                                                                                       : progress::retry;
      }
    }
    std::uint64_t token() const noexcept { return without_queue; }

   private:
    enum place : std::int32_t { look_at_queue, look, compare, hold };
    process target_;
    place at_ = look_at_queue;
    std::uint64_t came_ = 0;
  };
  /// Locks a target exclusively: a lock that is free takes one operation that changes something.
  using exclusive = first_try<try_exclusive, queued_exclusive>;
  /// Gives an exclusive lock back.
  class exclusive_release {
   public:
    exclusive_release(process target, const lock_context& c) noexcept
        : target_(target),
          row_(static_cast<std::int32_t>(c.token)),
          most_in_a_row_(c.most_in_a_row),
          at_(c.token == without_queue ? let_go : look) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case let_go:
          w.fetch_add(head, came(target_), std::uint64_t{0} - held);
          return progress::done;
        case look:
          if (row_ + 1 >= most_in_a_row_) {
            at_ = look_at_phase;
            return step(w);
          }
          after_ = linked(w.load(self, next(target_)));
          at_ = after_ >= 0 ? pass_on : look_at_phase;
          return progress::more;
        case pass_on:
          w.store(after_, status(target_), has_lock + static_cast<std::uint64_t>(row_) + 1);
          return progress::done;
        case look_at_phase:
          phase_ = static_cast<std::int32_t>(w.load(head, came(target_)) & phase);
          at_ = open;
          return progress::more;
        case open:
          w.fetch_add(head, came(target_), phase_ == 3 ? std::uint64_t{0} - 3 : 1);
          at_ = look_behind;
          return progress::more;
        case look_behind:
        case wait_behind: {
          const std::uint64_t after = w.load(self, next(target_));
          if (after != 0) {
            after_ = linked(after);
            at_ = send_up;
            return progress::more;
          }
          if (at_ == wait_behind) return progress::wait;
          at_ = leave;
          return progress::more;
        }
        case leave:
          if (w.compare_exchange(head, tail(target_), link_to(self), 0) == link_to(self))
            return progress::done;
          at_ = wait_behind;
          return progress::more;
        default:
          w.store(after_, status(target_), goes_up);
          return progress::done;
      }
    }

   private:
    enum place : std::int32_t {
      let_go,
      look,
      pass_on,
      look_at_phase,
      open,
      look_behind,
      wait_behind,
      leave,
      send_up
    };
    process target_;
    std::int32_t row_, most_in_a_row_;
    process after_ = -1;
    std::int32_t phase_ = 0;
    place at_;
  };
};

}  // namespace weft::inline WEFT_ABI::rma::detail
