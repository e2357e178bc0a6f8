// SPDX-License-Identifier: BSL-1.0
// Locks for readers and writers that know which processes are close to each other.
#pragma once

#include <weft/rma/detail/lock_steps.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// Processes come in groups. A reader counts itself in a word of its own group, so readers of different
/// groups do not meet. Writers of a group queue there, and the first of each group queues at the target: the
/// lock stays in a group for some writers in a row. A writer closes the counters of all groups and waits for
/// the readers that are inside. A reader that comes meanwhile waits for the end of this phase of writers
/// only, and the next phase waits for it: nobody starves. All words of a lock but one lie with the first
/// process of a group.
/// *Source*: Schmid, Besta, Hoefler 2016 (counters and queues in a tree); Brandenburg, Anderson 2010
/// (phases).
struct rma_rw_lock {
  /// Words of a process: the end of the queue of groups, one for gated_lock, and seven for each target.
  static constexpr std::uint32_t words(int processes) noexcept {
    return 2 + 7 * static_cast<std::uint32_t>(processes);
  }
  static constexpr std::uint32_t groups_tail = 0;  ///< at the target
  static constexpr std::uint32_t window_word = 1;  ///< at process 0
  /// Of each process, in the queue of its group.
  static constexpr std::uint32_t next(process target) noexcept { return of(target, 0); }
  static constexpr std::uint32_t status(process target) noexcept { return of(target, 1); }
  /// Of each group, at its first process: the end of its queue, and its place in the queue of groups.
  static constexpr std::uint32_t tail(process target) noexcept { return of(target, 2); }
  static constexpr std::uint32_t group_next(process target) noexcept { return of(target, 3); }
  static constexpr std::uint32_t group_blocked(process target) noexcept { return of(target, 4); }
  /// Readers of the group that have come: 8 each. The lowest two bits count phases: odd while it is closed.
  /// The third one: a writer of one_group_lock holds it without the queue.
  static constexpr std::uint32_t came(process target) noexcept { return of(target, 5); }
  /// Readers of the group that have gone.
  static constexpr std::uint32_t gone(process target) noexcept { return of(target, 6); }
  static constexpr std::uint32_t of(process target, std::uint32_t i) noexcept {
    return 2 + 7 * static_cast<std::uint32_t>(target) + i;
  }
  static constexpr std::uint64_t closed = 1, phase = 3, held = 4, reader = 8;
  /// What the status says. From `has_lock` on: that many writers of the group have had the lock in a row.
  static constexpr std::uint64_t waits = 0, goes_up = 1, has_lock = 2;

  /// Gives an exclusive lock back.
  class exclusive_release {
   public:
    exclusive_release(process target, const lock_context& c) noexcept
        : exclusive_release(target, c, static_cast<std::int32_t>(c.token)) {}
    exclusive_release(process target, const lock_context& c, std::int32_t in_a_row) noexcept
        : target_(target),
          group_(c.group),
          processes_(c.processes),
          row_(in_a_row),
          most_in_a_row_(c.most_in_a_row) {}
    /// Gives up what try_exclusive has got: both queues, and the groups that lie before a process.
    void give_up(process closed_before) noexcept {
      processes_ = closed_before;
      at_ = processes_ != 0 ? look_at_group : look_up;
    }
    /// Gives up the queue of the group, which is all that try_exclusive has got.
    void give_up_queue() noexcept { at_ = look_behind; }
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self(), head = first_of_group(self, group_);
      switch (at_) {
        case look:
          if (row_ + 1 >= most_in_a_row_) {
            at_ = look_at_group;
            return step(w);
          }
          after_ = linked(w.load(self, next(target_)));
          at_ = after_ >= 0 ? pass_on : look_at_group;
          return progress::more;
        case pass_on:
          w.store(after_, status(target_), has_lock + static_cast<std::uint64_t>(row_) + 1);
          return progress::done;
        case look_at_group:
          phase_ = static_cast<std::int32_t>(w.load(at_group_, came(target_)) & phase);
          at_ = open;
          return progress::more;
        case open:
          w.fetch_add(at_group_, came(target_), phase_ == 3 ? std::uint64_t{0} - 3 : 1);
          at_group_ += group_;
          at_ = at_group_ < processes_ ? look_at_group : look_up;
          return progress::more;
        case look_up:
        case wait_up: {
          const std::uint64_t after = w.load(head, group_next(target_));
          if (after != 0) {
            after_ = linked(after);
            at_ = pass_up;
            return progress::more;
          }
          if (at_ == wait_up) return progress::wait;
          at_ = leave_up;
          return progress::more;
        }
        case leave_up:
          at_ = w.compare_exchange(target_, groups_tail, link_to(head), 0) == link_to(head) ? look_behind
                                                                                            : wait_up;
          return progress::more;
        case pass_up:
          w.store(after_, group_blocked(target_), 0);
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
      look,
      pass_on,
      look_at_group,
      open,
      look_up,
      wait_up,
      leave_up,
      pass_up,
      look_behind,
      wait_behind,
      leave,
      send_up
    };
    process target_, group_, processes_;
    std::int32_t row_, most_in_a_row_;
    process at_group_ = 0, after_ = -1;
    std::int32_t phase_ = 0;
    place at_ = look;
  };

  /// Locks a target exclusively. The token: how many writers of the group have had the lock before, in a row.
  class exclusive {
   public:
    exclusive(process target, const lock_context& c) noexcept
        : target_(target), group_(c.group), processes_(c.processes) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self(), head = first_of_group(self, group_);
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
          at_ = before == 0 ? prepare_group_next : link;
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
            row_ = static_cast<std::int32_t>(now - has_lock);
            return progress::done;
          }
          at_ = prepare_group_next;
          return progress::more;
        }
        case prepare_group_next:
          w.store(head, group_next(target_), 0);
          at_ = prepare_group_blocked;
          return progress::more;
        case prepare_group_blocked:
          w.store(head, group_blocked(target_), 1);
          at_ = enter_up;
          return progress::more;
        case enter_up: {
          const std::uint64_t before = w.exchange(target_, groups_tail, link_to(head));
          before_ = linked(before);
          at_ = before == 0 ? close : link_up;
          return progress::more;
        }
        case link_up:
          w.store(before_, group_next(target_), link_to(head));
          at_ = wait_up;
          return progress::more;
        case wait_up:
          if (w.load(head, group_blocked(target_)) != 0) return progress::wait;
          at_ = close;
          return progress::more;
        case close:
          came_ = w.fetch_add(at_group_, came(target_), closed) / reader;
          at_ = drain;
          return progress::more;
        default:
          if (w.load(at_group_, gone(target_)) != came_) return progress::wait;
          at_group_ += group_;
          if (at_group_ >= processes_) return progress::done;
          at_ = close;
          return progress::more;
      }
    }
    std::uint64_t token() const noexcept { return static_cast<std::uint64_t>(row_); }

   private:
    enum place : std::int32_t {
      prepare_next,
      prepare_status,
      enter,
      link,
      wait,
      prepare_group_next,
      prepare_group_blocked,
      enter_up,
      link_up,
      wait_up,
      close,
      drain
    };
    process target_, group_, processes_, before_ = -1, at_group_ = 0;
    std::int32_t row_ = 0;
    std::uint64_t came_ = 0;
    place at_ = prepare_next;
    [[maybe_unused]] std::int32_t unused_ = 0;  // no padding: a search compares machines byte by byte
  };
  /// Locks a target exclusively if nobody has it: enters both queues and closes all groups, or leaves again.
  class try_exclusive {
   public:
    try_exclusive(process target, const lock_context& c) noexcept
        : target_(target), group_(c.group), processes_(c.processes), give_up_(target, c, 0) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self(), head = first_of_group(self, group_);
      switch (at_) {
        case prepare_next:
          w.store(self, next(target_), 0);
          at_ = enter;
          return progress::more;
        case enter:
          if (w.compare_exchange(head, tail(target_), 0, link_to(self)) != 0) return progress::retry;
          at_ = prepare_group_next;
          return progress::more;
        case prepare_group_next:
          w.store(head, group_next(target_), 0);
          at_ = enter_up;
          return progress::more;
        case enter_up:
          if (w.compare_exchange(target_, groups_tail, 0, link_to(head)) == 0) {
            at_ = look;
          } else {
            give_up_.give_up_queue();
            at_ = leave;
          }
          return progress::more;
        case look:
          came_ = w.load(at_group_, came(target_));
          at_ = compare;
          return progress::more;
        case compare:
          at_ = w.load(at_group_, gone(target_)) == came_ / reader ? close : fail_();
          return progress::more;
        case close:
          if (w.compare_exchange(at_group_, came(target_), came_, came_ + closed) != came_) {
            at_ = fail_();
            return progress::more;
          }
          at_group_ += group_;
          if (at_group_ >= processes_) return progress::done;
          at_ = look;
          return progress::more;
        default: {
          const progress p = give_up_.step(w);
          return p == progress::done ? progress::retry : p;
        }
      }
    }

   private:
    enum place : std::int32_t {
      prepare_next,
      enter,
      prepare_group_next,
      enter_up,
      look,
      compare,
      close,
      leave
    };
    place fail_() noexcept {
      give_up_.give_up(at_group_);
      return leave;
    }
    process target_, group_, processes_, at_group_ = 0;
    std::uint64_t came_ = 0;
    exclusive_release give_up_;
    place at_ = prepare_next;
  };
  /// Locks a target for reading.
  class shared {
   public:
    shared(process target, const lock_context& c) noexcept : target_(target), group_(c.group) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process head = first_of_group(w.self(), group_);
      if (counted_ == 0) {
        counted_ = 1;
        seen_ = static_cast<std::uint32_t>(w.fetch_add(head, came(target_), reader) & (phase | held));
        return (seen_ & (closed | held)) == 0 ? progress::done : progress::more;
      }
      // Neither can come back before this reader has gone: no writer passes by readers that have come.
      const std::uint64_t now = w.load(head, came(target_));
      const bool over = (seen_ & closed) != 0 ? (now & phase) != (seen_ & phase) : (now & held) == 0;
      return over ? progress::done : progress::wait;
    }

   private:
    process target_, group_;
    std::int32_t counted_ = 0;
    std::uint32_t seen_ = 0;
  };
  /// Locks a target for reading if no writer has it.
  class try_shared {
   public:
    try_shared(process target, const lock_context& c) noexcept : target_(target), group_(c.group) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process head = first_of_group(w.self(), group_);
      const std::uint64_t was = looked_ != 0 ? w.compare_exchange(head, came(target_), seen_, seen_ + reader)
                                             : w.load(head, came(target_));
      if (looked_ != 0 && was == seen_) return progress::done;
      if (was & (closed | held)) return progress::retry;
      seen_ = was;
      looked_ = 1;
      return progress::more;
    }

   private:
    process target_, group_;
    std::uint64_t seen_ = 0;
    std::int64_t looked_ = 0;
  };
  /// Gives a shared lock back.
  class shared_release {
   public:
    shared_release(process target, const lock_context& c) noexcept : target_(target), group_(c.group) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      w.fetch_add(first_of_group(w.self(), group_), gone(target_), 1);
      return progress::done;
    }

   private:
    process target_, group_;
  };
};

}  // namespace weft::inline WEFT_ABI::rma::detail
