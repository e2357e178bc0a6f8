// SPDX-License-Identifier: BSL-1.0
// The locks of a window, of any kind, and which of them this process holds.
#pragma once

#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_locks.hpp>
#include <weft/rma/detail/window_words.hpp>
#include <weft/rma/lock_kind.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// *Throws*: weft::error if this process holds another form of the lock already, or does not hold what it
/// gives back, or the kind has no such form; std::out_of_range; mpi::error. *Thread safety*: one thread of
/// each process at a time.
class target_locks {
 public:
  /// Words of each process that locks of a kind need.
  static std::size_t words(lock_kind kind, int processes) noexcept {
    switch (kind) {
      case lock_kind::mpi:
        return 0;
      case lock_kind::mcs_writer_preference:
        return mcs_writer_preference_lock::words(processes);
      case lock_kind::d_mcs:
        return d_mcs_lock::words(processes);
      default:
        return gbh_lock::words(processes);
    }
  }

  /// Collective. One of the two kinds of words is there.
  target_locks(const mpi::communicator& group, lock_kind kind, std::optional<shared_words> shared,
               std::optional<mpi_words> remote)
      : kind_(kind),
        shared_(std::move(shared)),
        remote_(std::move(remote)),
        holds_(static_cast<std::size_t>(group.size())) {
    if (kind != lock_kind::mpi) return;
    void* none = nullptr;
    mpi::detail::check(
        MPI_Win_allocate(sizeof(std::uint64_t), 1, MPI_INFO_NULL, group.handle(), &none, &lock_window_),
        "MPI_Win_allocate");
    MPI_Win_set_errhandler(lock_window_, MPI_ERRORS_RETURN);
  }
  target_locks(const target_locks&) = delete;
  target_locks& operator=(const target_locks&) = delete;
  /// Collective.
  ~target_locks() {
    if (lock_window_ != MPI_WIN_NULL) MPI_Win_free(&lock_window_);
  }

  /// How many locks this process holds.
  std::size_t held_here() const noexcept { return locks_held_; }

  /// Locks a target exclusively.
  void lock_exclusive(process target) {
    begin_(target);
    const bool another = exclusive_held_ != 0;
    switch (kind_) {
      case lock_kind::mpi:
        mpi::detail::check(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, lock_window_), "MPI_Win_lock");
        break;
      case lock_kind::gbh:
      case lock_kind::gbh_backoff:
        execute_(gbh_lock::exclusive(target, another));
        break;
      case lock_kind::mcs_writer_preference:
        execute_(mcs_writer_preference_lock::exclusive(target));
        break;
      case lock_kind::d_mcs:
        execute_(d_mcs_lock::exclusive(target));
    }
    taken_(target, held::exclusive);
  }
  /// Gives an exclusive lock back.
  void unlock_exclusive(process target) {
    given_back_(target, held::exclusive);
    const bool another = exclusive_held_ != 0;
    switch (kind_) {
      case lock_kind::mpi:
        mpi::detail::check(MPI_Win_unlock(target, lock_window_), "MPI_Win_unlock");
        break;
      case lock_kind::gbh:
      case lock_kind::gbh_backoff:
        execute_(gbh_lock::exclusive_release(target, another));
        break;
      case lock_kind::mcs_writer_preference:
        execute_(mcs_writer_preference_lock::exclusive_release(target));
        break;
      case lock_kind::d_mcs:
        execute_(d_mcs_lock::exclusive_release(target));
    }
  }
  /// Locks a target for reading.
  void lock_shared(process target) {
    if (!has_shared(kind_))
      throw error(std::string("weft: locks of the kind ") + name(kind_) + " are exclusive");
    begin_(target);
    switch (kind_) {
      case lock_kind::mpi:
        mpi::detail::check(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, lock_window_), "MPI_Win_lock");
        break;
      case lock_kind::mcs_writer_preference:
        execute_(mcs_writer_preference_lock::shared(target));
        break;
      default:
        execute_(gbh_lock::shared(target));
    }
    taken_(target, held::shared);
  }
  /// Gives a shared lock back.
  void unlock_shared(process target) {
    given_back_(target, held::shared);
    switch (kind_) {
      case lock_kind::mpi:
        mpi::detail::check(MPI_Win_unlock(target, lock_window_), "MPI_Win_unlock");
        break;
      case lock_kind::mcs_writer_preference:
        execute_(mcs_writer_preference_lock::shared_release(target));
        break;
      default:
        execute_(gbh_lock::shared_release(target));
    }
  }
  /// Locks all targets for reading.
  void lock_shared_all() {
    if (!has_lock_all(kind_))
      throw error(std::string("weft: locks of the kind ") + name(kind_) + " are for single targets");
    if (locks_held_ != 0) throw error("weft: this process holds other locks of the window");
    if (kind_ == lock_kind::mpi)
      mpi::detail::check(MPI_Win_lock_all(0, lock_window_), "MPI_Win_lock_all");
    else
      execute_(gbh_lock::shared_all());
    all_held_ = true;
    ++locks_held_;
  }
  /// Gives the lock on all targets back.
  void unlock_shared_all() {
    if (!all_held_) throw error("weft: this process does not hold the lock");
    all_held_ = false;
    --locks_held_;
    if (kind_ == lock_kind::mpi)
      mpi::detail::check(MPI_Win_unlock_all(lock_window_), "MPI_Win_unlock_all");
    else
      execute_(gbh_lock::shared_all_release());
  }

 private:
  enum class held : std::uint8_t { nothing, shared, exclusive };

  template <class Steps>
  void execute_(const Steps& steps) {
    const bool patient = kind_ == lock_kind::gbh_backoff;
    shared_ ? detail::execute(steps, *shared_, patient) : detail::execute(steps, *remote_, patient);
  }
  void begin_(process target) const {
    check_(target);
    if (all_held_ || holds_[static_cast<std::size_t>(target)] != held::nothing)
      throw error("weft: this process holds a lock of process " + std::to_string(target) + " already");
  }
  void taken_(process target, held how) noexcept {
    holds_[static_cast<std::size_t>(target)] = how;
    ++locks_held_;
    exclusive_held_ += how == held::exclusive;
  }
  void given_back_(process target, held how) {
    check_(target);
    if (holds_[static_cast<std::size_t>(target)] != how)
      throw error("weft: this process does not hold the lock");
    holds_[static_cast<std::size_t>(target)] = held::nothing;
    --locks_held_;
    exclusive_held_ -= how == held::exclusive;
  }

  void check_(process target) const {
    if (target < 0 || static_cast<std::size_t>(target) >= holds_.size())
      throw std::out_of_range("weft: a lock of process " + std::to_string(target) + ", in a window of " +
                              std::to_string(holds_.size()) + " processes");
  }

  lock_kind kind_;
  std::optional<shared_words> shared_;
  std::optional<mpi_words> remote_;
  MPI_Win lock_window_ = MPI_WIN_NULL;
  std::vector<held> holds_;  // of each process
  std::size_t locks_held_ = 0, exclusive_held_ = 0;
  bool all_held_ = false;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
