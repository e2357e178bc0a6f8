// SPDX-License-Identifier: BSL-1.0
// The locks of a window, of any kind, and which of them this process holds.
#pragma once

#include <weft/base/error.hpp>
#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gated_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/one_group_lock.hpp>
#include <weft/rma/detail/remote_memory.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>
#include <weft/rma/detail/shared_words.hpp>
#include <weft/rma/lock_kind.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Calls `f` with the lock of a kind, which is not that of MPI. `one_group`: all processes are one.
template <class F>
decltype(auto) with_lock(lock_kind kind, bool lock_all, bool one_group, F&& f) {
  switch (kind) {
    case lock_kind::mcs_writer_preference:
      return lock_all ? f(gated_lock<mcs_writer_preference_lock>{}) : f(mcs_writer_preference_lock{});
    case lock_kind::rma_rw:
      if (one_group) return lock_all ? f(gated_lock<one_group_lock>{}) : f(one_group_lock{});
      return lock_all ? f(gated_lock<rma_rw_lock>{}) : f(rma_rw_lock{});
    case lock_kind::d_mcs:
      return f(d_mcs_lock{});
    default:
      return f(gbh_lock{});
  }
}

/// Words of each process that locks of a kind need.
inline std::size_t words_of_locks(lock_kind kind, int processes) {
  if (kind == lock_kind::mpi) return 0;
  return with_lock(kind, false, false, [processes]<class Lock>(Lock) { return Lock::words(processes); });
}

/// A lock of each process that is not made of words: that of MPI.
class lock_of_targets {
 public:
  virtual ~lock_of_targets() = default;
  virtual void lock(process target, bool exclusive) = 0;
  virtual void unlock(process target) = 0;
  virtual void lock_shared_all() = 0;
  virtual void unlock_shared_all() = 0;
  /// Whether a target may stay outside MPI while others lock its memory, wherever that lies.
  virtual bool one_sided() const noexcept = 0;
};

/// *Throws*: weft::error if this process holds another form of the lock already, or does not hold what it
/// gives back, or the kind has no such form; std::out_of_range; mpi::error. *Thread safety*: one thread of
/// each process at a time. The destructor is collective.
class target_locks {
 public:
  using any_words = std::variant<shared_words, memory_words>;

  /// `lock_all`: the kind is to have a lock of all targets. `other`: what locks for the kind mpi, else null.
  target_locks(lock_kind kind, bool lock_all, const lock_context& context, any_words words,
               std::unique_ptr<lock_of_targets> other)
      : kind_(kind),
        lock_all_(lock_all),
        context_(context),
        words_(std::move(words)),
        other_(std::move(other)),
        holds_(static_cast<std::size_t>(context.processes)) {}
  target_locks(const target_locks&) = delete;
  target_locks& operator=(const target_locks&) = delete;

  /// Whether a target may stay outside MPI while others lock its memory, wherever that lies.
  bool one_sided() const noexcept { return other_ == nullptr || other_->one_sided(); }
  /// How many locks this process holds.
  std::size_t held_here() const noexcept { return locks_held_; }

  /// Locks a target exclusively.
  void lock_exclusive(process target) {
    begin_(target);
    if (kind_ == lock_kind::mpi)
      other_->lock(target, true);
    else
      steps_([&]<class Lock>(Lock) { lock_<typename Lock::exclusive>(target); });
    taken_(target, form::exclusive);
  }
  /// Locks a target exclusively if nobody else has it. *Returns*: whether.
  bool try_lock_exclusive(process target) {
    begin_(target);
    bool got = false;
    tries_([&]<class Lock>(Lock) { got = try_<typename Lock::try_exclusive>(target); });
    if (got) taken_(target, form::exclusive);
    return got;
  }
  /// Gives an exclusive lock back.
  void unlock_exclusive(process target) {
    given_back_(target, form::exclusive);
    if (kind_ == lock_kind::mpi)
      other_->unlock(target);
    else
      steps_([&]<class Lock>(Lock) { unlock_<typename Lock::exclusive_release>(target); });
  }
  /// Locks a target for reading.
  void lock_shared(process target) {
    must_have_shared_();
    begin_(target);
    if (kind_ == lock_kind::mpi)
      other_->lock(target, false);
    else
      steps_([&]<class Lock>(Lock) {
        if constexpr (requires { typename Lock::shared; }) lock_<typename Lock::shared>(target);
      });
    taken_(target, form::shared);
  }
  /// Locks a target for reading if no writer has it or waits for it. *Returns*: whether.
  bool try_lock_shared(process target) {
    must_have_shared_();
    begin_(target);
    bool got = false;
    tries_([&]<class Lock>(Lock) {
      if constexpr (requires { typename Lock::shared; }) got = try_<typename Lock::try_shared>(target);
    });
    if (got) taken_(target, form::shared);
    return got;
  }
  /// Gives a shared lock back.
  void unlock_shared(process target) {
    given_back_(target, form::shared);
    if (kind_ == lock_kind::mpi)
      other_->unlock(target);
    else
      steps_([&]<class Lock>(Lock) {
        if constexpr (requires { typename Lock::shared; }) unlock_<typename Lock::shared_release>(target);
      });
  }
  /// Locks all targets for reading.
  void lock_shared_all() {
    begin_all_();
    if (kind_ == lock_kind::mpi)
      other_->lock_shared_all();
    else
      steps_([&]<class Lock>(Lock) {
        if constexpr (requires { typename Lock::shared_all; }) run_(typename Lock::shared_all{});
      });
    all_held_ = true;
    ++locks_held_;
  }
  /// Locks all targets for reading if no writer has one or waits for one. *Returns*: whether.
  bool try_lock_shared_all() {
    begin_all_();
    tries_([&]<class Lock>(Lock) {
      if constexpr (requires { typename Lock::try_shared_all; }) {
        typename Lock::try_shared_all steps;
        all_held_ = std::visit([&](auto& words) { return detail::try_execute(steps, words); }, words_);
      }
    });
    locks_held_ += all_held_;
    return all_held_;
  }
  /// Gives the lock on all targets back.
  void unlock_shared_all() {
    if (!all_held_) refuse_return_();
    all_held_ = false;
    --locks_held_;
    if (kind_ == lock_kind::mpi)
      other_->unlock_shared_all();
    else
      steps_([&]<class Lock>(Lock) {
        if constexpr (requires { typename Lock::shared_all; }) run_(typename Lock::shared_all_release{});
      });
  }

 private:
  enum class form : std::uint8_t { nothing, shared, exclusive };
  struct held {
    form how = form::nothing;
    contention seen;
    std::uint64_t token = 0;
  };

  template <class F>
  void steps_(F&& f) {
    with_lock(kind_, lock_all_, context_.group >= context_.processes, f);
  }
  template <class F>
  void tries_(F&& f) {
    if (kind_ == lock_kind::mpi) throw error("weft: MPI_Win_lock cannot be tried, only waited for");
    with_lock(kind_, lock_all_, context_.group >= context_.processes, f);
  }
  lock_context context_of_(process target) const noexcept {
    lock_context c = context_;
    c.holds_another = exclusive_held_ != 0;
    c.token = holds_[static_cast<std::size_t>(target)].token;
    return c;
  }
  template <class Steps>
  void lock_(process target) {
    if constexpr (requires { typename Steps::attempt; }) {  // these two after another are first_try
      contention& seen = holds_[static_cast<std::size_t>(target)].seen;
      if (seen.tries()) {
        if (try_<typename Steps::attempt>(target)) return;
        seen.failed();
      }
      lock_<typename Steps::rest>(target);
    } else {
      Steps steps(target, context_of_(target));
      run_(steps);
      holds_[static_cast<std::size_t>(target)].token = token_of(steps);
    }
  }
  template <class Steps>
  void unlock_(process target) {
    run_(Steps(target, context_of_(target)));
  }
  template <class Steps>
  bool try_(process target) {
    Steps steps(target, context_of_(target));
    const bool got = std::visit([&](auto& words) { return detail::try_execute(steps, words); }, words_);
    holds_[static_cast<std::size_t>(target)].token = token_of(steps);
    return got;
  }
  template <class Steps>
  void run_(Steps&& steps) {
    const bool patient = kind_ == lock_kind::gbh_backoff;
    std::visit([&](auto& words) { detail::execute(steps, words, patient); }, words_);
  }

  void begin_all_() const {
    if (!has_lock_all(kind_) && !(lock_all_ && has_shared(kind_)))
      throw error(std::string("weft: locks of the kind ") + name(kind_) +
                  (has_shared(kind_) ? " lock all targets only if window_options::lock_all says so"
                                     : " are for single targets"));
    if (locks_held_ != 0) throw error("weft: this process holds other locks of the window");
  }
  void must_have_shared_() const {
    if (!has_shared(kind_)) [[unlikely]]
      refuse_shared_();
  }
  void begin_(process target) const {
    check_(target);
    if (all_held_ || holds_[static_cast<std::size_t>(target)].how != form::nothing) [[unlikely]]
      refuse_second_(target);
  }
  void taken_(process target, form how) noexcept {
    holds_[static_cast<std::size_t>(target)].how = how;
    ++locks_held_;
    exclusive_held_ += how == form::exclusive;
  }
  void given_back_(process target, form how) {
    check_(target);
    if (holds_[static_cast<std::size_t>(target)].how != how) [[unlikely]]
      refuse_return_();
    holds_[static_cast<std::size_t>(target)].how = form::nothing;
    --locks_held_;
    exclusive_held_ -= how == form::exclusive;
  }
  void check_(process target) const {
    if (target < 0 || target >= context_.processes) [[unlikely]]
      refuse_target_(target);
  }
  // Apart, so that a lock that is free takes few instructions.
  [[noreturn]] WEFT_COLD static void refuse_second_(process target) {
    throw error("weft: this process holds a lock of process " + std::to_string(target) + " already");
  }
  [[noreturn]] WEFT_COLD void refuse_shared_() const {
    throw error(std::string("weft: locks of the kind ") + name(kind_) + " are exclusive");
  }
  [[noreturn]] WEFT_COLD static void refuse_return_() {
    throw error("weft: this process does not hold the lock");
  }
  [[noreturn]] WEFT_COLD void refuse_target_(process target) const {
    throw std::out_of_range("weft: a lock of process " + std::to_string(target) + ", in a window of " +
                            std::to_string(context_.processes) + " processes");
  }

  lock_kind kind_;
  bool lock_all_;
  lock_context context_;
  any_words words_;
  std::unique_ptr<lock_of_targets> other_;
  std::vector<held> holds_;  // of each process
  std::size_t locks_held_ = 0, exclusive_held_ = 0;
  bool all_held_ = false;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
