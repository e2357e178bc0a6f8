// SPDX-License-Identifier: BSL-1.0
// Locks with a queue of writers, who come first, and a stack of readers.
#pragma once

#include <weft/rma/detail/lock_steps.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// A queue of writers and a stack of readers for each target. A writer that leaves hands over to the next
/// one; readers enter when no writer is active or interested, and each lets the next one in. So readers may
/// starve, writers may not. *Source*: Mellor-Crummey, Scott 1991 (readers and writers, preference for
/// writers); Christgau, Schnor 2016, section 4.3. That the first reader decides by a single operation was
/// found with tests/rma/search_test.cpp.
struct mcs_writer_preference_lock {
  /// Words of a process: those of its lock, and its place with each target.
  static constexpr std::uint32_t words(int processes) noexcept {
    return 5 + 2 * static_cast<std::uint32_t>(processes);
  }
  static constexpr std::uint32_t tail = 0;          ///< of the queue of writers
  static constexpr std::uint32_t first_writer = 1;  ///< the head of that queue
  static constexpr std::uint32_t top = 2;           ///< of the stack of readers
  static constexpr std::uint32_t state = 3;         ///< the flags, and the number of readers inside
  static constexpr std::uint32_t window_word = 4;   ///< at process 0, for gated_lock
  static constexpr std::uint32_t next(process target) noexcept {
    return 5 + 2 * static_cast<std::uint32_t>(target);
  }
  static constexpr std::uint32_t blocked(process target) noexcept { return next(target) + 1; }
  /// Parts of the state. *Invariant*: while a writer is active, no reader is inside; readers are interested
  /// only if there are some in the stack, and then a writer was interested or active when they came.
  static constexpr std::uint64_t readers_interested = 1, writer_interested = 2, writer_active = 4, reader = 8;
  static constexpr std::uint64_t no_bits = 0;
  static constexpr std::uint64_t without_queue = 1;  ///< a token: the writer is not in the queue

  /// Locks a target exclusively, as one of the queue.
  class queued_exclusive {
   public:
    queued_exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case prepare_next:
          w.store(self, next(target_), 0);
          at_ = prepare_blocked;
          return progress::more;
        case prepare_blocked:
          w.store(self, blocked(target_), 1);
          at_ = enter;
          return progress::more;
        case enter: {
          const std::uint64_t before = w.exchange(target_, tail, link_to(self));
          before_ = linked(before);
          at_ = before == 0 ? publish : link;
          return progress::more;
        }
        case link:
          w.store(before_, next(target_), link_to(self));
          at_ = wait;
          return progress::more;
        case publish:
          w.store(target_, first_writer, link_to(self));
          at_ = announce;
          return progress::more;
        case announce:
          at_ = w.fetch_or(target_, state, writer_interested) == 0 ? begin : wait;
          return progress::more;
        case begin:
          w.fetch_add(target_, state, writer_active - writer_interested);
          return progress::done;
        default:
          return w.load(self, blocked(target_)) == 0 ? progress::done : progress::wait;
      }
    }

   private:
    enum place : std::int32_t { prepare_next, prepare_blocked, enter, link, publish, announce, begin, wait };
    process target_, before_ = -1;
    place at_ = prepare_next;
  };
  /// Locks a target exclusively if nobody has it or waits for it; without the queue.
  class try_exclusive {
   public:
    try_exclusive(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      return w.compare_exchange(target_, state, 0, writer_active) == 0 ? progress::done : progress::retry;
    }
    std::uint64_t token() const noexcept { return without_queue; }

   private:
    process target_;
  };
  /// Locks a target exclusively: a lock that is free takes one operation.
  using exclusive = first_try<try_exclusive, queued_exclusive>;
  /// Gives an exclusive lock back.
  class exclusive_release {
   public:
    exclusive_release(process target, const lock_context& c) noexcept
        : target_(target), at_(c.token == without_queue ? end : look) {}
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
          at_ = w.compare_exchange(target_, tail, link_to(self), 0) == link_to(self) ? end : wait;
          return progress::more;
        case end: {
          const std::uint64_t before = w.fetch_add(target_, state, no_bits - writer_active);
          if (before & writer_interested)
            at_ = begin_other;
          else if (before & readers_interested)
            at_ = let_in;
          else
            return progress::done;
          return progress::more;
        }
        case begin_other:
          w.fetch_add(target_, state, writer_active - writer_interested);
          at_ = find_other;
          return progress::more;
        case find_other:
          after_ = linked(w.load(target_, first_writer));
          at_ = hand_over;
          return progress::more;
        case let_in:
          w.fetch_add(target_, state, reader - readers_interested);
          at_ = take_stack;
          return progress::more;
        case take_stack:
          after_ = linked(w.exchange(target_, top, 0));
          at_ = hand_over;
          return progress::more;
        default:
          w.store(after_, blocked(target_), 0);
          return progress::done;
      }
    }

   private:
    enum place : std::int32_t {
      look,
      leave,
      wait,
      end,
      begin_other,
      find_other,
      let_in,
      take_stack,
      hand_over
    };
    process target_, after_ = -1;
    place at_;
  };
  /// Locks a target for reading.
  class queued_shared {
   public:
    queued_shared(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const process self = w.self();
      switch (at_) {
        case prepare:
          w.store(self, blocked(target_), 1);
          at_ = look;
          return progress::more;
        case look:
          seen_ = w.load(target_, top);
          at_ = link;
          return progress::more;
        case link:
          w.store(self, next(target_), seen_);
          at_ = push;
          return progress::more;
        case push: {
          const std::uint64_t was = w.compare_exchange(target_, top, seen_, link_to(self));
          if (was == seen_)
            at_ = seen_ == 0 ? look_at_state : wait;
          else
            seen_ = was, at_ = link;
          return progress::more;
        }
        case look_at_state:
          seen_ = w.load(target_, state);
          at_ = decide;
          return progress::more;
        case decide: {
          // One operation: either a reader more, or readers wait for a writer.
          const bool enters = (seen_ & (writer_interested | writer_active)) == 0;
          const std::uint64_t wanted = enters ? seen_ + reader : seen_ | readers_interested;
          const std::uint64_t was = w.compare_exchange(target_, state, seen_, wanted);
          if (was == seen_)
            at_ = enters ? take_stack : wait;
          else
            seen_ = was;
          return progress::more;
        }
        case take_stack:
          seen_ = w.exchange(target_, top, 0);
          at_ = let_top_in;
          return progress::more;
        case let_top_in:
          w.store(linked(seen_), blocked(target_), 0);
          at_ = wait;
          return progress::more;
        case wait:
          if (w.load(self, blocked(target_)) != 0) return progress::wait;
          at_ = look_behind;
          return progress::more;
        case look_behind:
          seen_ = w.load(self, next(target_));
          if (seen_ == 0) return progress::done;
          at_ = count_next;
          return progress::more;
        case count_next:
          w.fetch_add(target_, state, reader);
          at_ = let_next_in;
          return progress::more;
        default:
          w.store(linked(seen_), blocked(target_), 0);
          return progress::done;
      }
    }

   private:
    enum place : std::int32_t {
      prepare,
      look,
      link,
      push,
      look_at_state,
      decide,
      take_stack,
      let_top_in,
      wait,
      look_behind,
      count_next,
      let_next_in
    };
    process target_;
    place at_ = prepare;
    std::uint64_t seen_ = 0;
  };
  /// Locks a target for reading if no writer has it or waits for it.
  class try_shared {
   public:
    try_shared(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      const std::uint64_t was = w.compare_exchange(target_, state, seen_, seen_ + reader);
      if (was == seen_) return progress::done;
      // Readers are interested while a writer that leaves is about to let them in: the last reader that
      // leaves must not find one more inside, and begin another writer.
      const bool free = was % reader == 0;  // no flag
      seen_ = free ? was : 0;
      return free ? progress::more : progress::retry;
    }

   private:
    process target_;
    [[maybe_unused]] std::int32_t unused_ = 0;  // no gap: the search compares bytes
    std::uint64_t seen_ = 0;
  };
  /// Locks a target for reading: where no writer is, by one operation.
  using shared = first_try<try_shared, queued_shared>;
  /// Gives a shared lock back.
  class shared_release {
   public:
    shared_release(process target, const lock_context&) noexcept : target_(target) {}
    template <remote_words W>
    progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
      switch (at_) {
        case leave: {
          const std::uint64_t before = w.fetch_add(target_, state, no_bits - reader);
          if ((before & ~readers_interested) != (reader | writer_interested)) return progress::done;
          at_ = begin_writer;  // the last one, and a writer waits
          return progress::more;
        }
        case begin_writer:
          w.fetch_add(target_, state, writer_active - writer_interested);
          at_ = find_writer;
          return progress::more;
        case find_writer:
          writer_ = linked(w.load(target_, first_writer));
          at_ = hand_over;
          return progress::more;
        default:
          w.store(writer_, blocked(target_), 0);
          return progress::done;
      }
    }

   private:
    enum place : std::int32_t { leave, begin_writer, find_writer, hand_over };
    process target_, writer_ = -1;
    place at_ = leave;
  };
};

}  // namespace weft::inline WEFT_ABI::rma::detail
