// SPDX-License-Identifier: BSL-1.0
// What locks are told and leave behind, and machines that several of them have.
#pragma once

#include <weft/rma/words.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// A process in a word: its number and one; 0 is nobody.
constexpr std::uint64_t link_to(process p) noexcept { return static_cast<std::uint64_t>(p) + 1; }
constexpr process linked(std::uint64_t link) noexcept { return static_cast<process>(link) - 1; }

/// The first process of the group of a process.
constexpr process first_of_group(process p, std::int32_t group) noexcept {
  return p < group ? 0 : p / group * group;  // a division takes half as long as a lock that is free
}

/// What a process knows when it locks or unlocks a target.
struct lock_context {
  bool holds_another = false;      ///< an exclusive lock of another target
  std::int32_t processes = 1;      ///< of the window
  std::int32_t group = 1;          ///< processes of a group: close to each other
  std::int32_t most_in_a_row = 1;  ///< writers of a group that follow each other
  bool contended = false;          ///< the target was not free lately: a try is likely to be in vain
  std::uint64_t token = 0;         ///< to unlock: what the steps that locked have left
};

/// What steps leave for those that give the lock back.
template <class Steps>
std::uint64_t token_of(const Steps& s) noexcept {
  if constexpr (requires { s.token(); }) return s.token();
  return 0;
}

/// Tries a machine once, unless that is likely to be in vain, and if it fails executes another one.
template <class Try, class Then>
class first_try {
 public:
  using attempt = Try;
  using rest = Then;

  first_try(process target, const lock_context& c) noexcept
      : try_(target, c), then_(target, c), tries_(c.contended ? 0 : 1) {}
  template <remote_words W>
  progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
    if (tries_ == 0) return then_.step(w);
    const progress p = try_.step(w);
    if (p != progress::retry) return p;
    tries_ = 0;
    return progress::more;
  }
  std::uint64_t token() const noexcept { return tries_ != 0 ? token_of(try_) : token_of(then_); }
  /// Whether the lock was not got by the try.
  bool was_contended() const noexcept { return tries_ == 0; }

 private:
  Try try_;
  Then then_;
  std::int64_t tries_;
};

/// Whether a process that has found a target contended tries it again: not at the next locks of it.
class contention {
 public:
  /// Whether the lock that begins now is to be tried first.
  bool tries() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  /// The try was in vain.
  void failed() noexcept { left_ = 15; }

 private:
  std::uint8_t left_ = 0;
};

/// Locks all targets for reading by a word at process 0: it counts writers that hold or wait for a lock (low
/// half), and those that have locked all (high half). Gives way to writers, and begins again.
template <std::uint32_t Word>
class enter_all {
 public:
  static constexpr std::uint64_t one = std::uint64_t{1} << 32;
  template <remote_words W>
  progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
    switch (at_) {
      case look:
        if (w.load(0, Word) % one != 0) return progress::retry;
        at_ = count;
        return progress::more;
      case count:
        if (w.fetch_add(0, Word, one) % one == 0) return progress::done;
        at_ = undo;
        return progress::more;
      default:
        w.fetch_add(0, Word, std::uint64_t{0} - one);
        at_ = look;
        return progress::retry;
    }
  }

 private:
  enum place : std::int32_t { look, count, undo };
  place at_ = look;
};
/// Gives such a lock on all targets back.
template <std::uint32_t Word>
class leave_all {
 public:
  template <remote_words W>
  progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
    w.fetch_add(0, Word, std::uint64_t{0} - enter_all<Word>::one);
    return progress::done;
  }
};

/// Two machines, one after the other.
template <class First, class Second>
class in_order {
 public:
  in_order(First first, Second second) noexcept : second_(second), first_(first) {}
  template <remote_words W>
  progress step(W& w) noexcept(noexcept(w.load(0, 0))) {
    if (in_second_ != 0) return second_.step(w);
    const progress p = first_.step(w);
    if (p != progress::done) return p;
    in_second_ = 1;
    return progress::more;
  }
  std::uint64_t token() const noexcept { return token_of(second_); }

 private:
  Second second_;  // the larger one comes first: no padding, a search compares machines byte by byte
  First first_;
  std::int32_t in_second_ = 0;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
