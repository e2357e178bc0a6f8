// SPDX-License-Identifier: BSL-1.0
// The lock of MPI, for each process of a window.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/owned_window.hpp>
#include <weft/rma/detail/probe.hpp>
#include <weft/rma/detail/target_locks.hpp>

namespace weft::inline WEFT_ABI::rma::detail {

/// MPI_Win_lock on a window of its own. begin() comes first; it and the destructor after it are collective.
/// *Throws*: mpi::error.
class mpi_lock final : public lock_of_targets {
 public:
  explicit mpi_lock(int processes) noexcept : processes_(processes) {}
  void begin(const mpi::communicator& group) {
    constexpr std::size_t line = 64;  // MPICH 4.0 needs whole ones
    mpi::detail::check(window_.allocate(group, line, false), "MPI_Win_allocate");
    auto& word = *static_cast<std::uint64_t*>(window_.base());
    word = 0;
    one_sided_ = found_one_sided(group, word, [this] {
      std::uint64_t seen = 0;
      for (int i = 0; i < 4 && seen == 0; ++i) {
        seen = lock_(MPI_LOCK_EXCLUSIVE, 0);
        mpi_lock::unlock(0);
      }
      return seen;
    });
  }

  void lock(process target, bool exclusive) override {
    lock_(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target);
  }
  void unlock(process target) override {
    mpi::detail::check(MPI_Win_unlock(target, window_.handle()), "MPI_Win_unlock");
  }
  void lock_shared_all() override {
    mpi::detail::check(MPI_Win_lock_all(0, window_.handle()), "MPI_Win_lock_all");
    undone_if_refused_([this] { MPI_Win_unlock_all(window_.handle()); },
                       [this] {
                         for (process p = 0; p < processes_; ++p) look_(p);
                         return std::uint64_t{0};
                       });
  }
  void unlock_shared_all() override {
    mpi::detail::check(MPI_Win_unlock_all(window_.handle()), "MPI_Win_unlock_all");
  }
  bool one_sided() const noexcept override { return one_sided_; }

 private:
  /// MPI may put off a lock to the first operation on its window, or to the unlock, and what the lock
  /// protects lies in another window: hence an operation. *Returns*: the word of the target.
  std::uint64_t lock_(int how, process target) {
    mpi::detail::check(MPI_Win_lock(how, target, 0, window_.handle()), "MPI_Win_lock");
    return undone_if_refused_([this, target] { MPI_Win_unlock(target, window_.handle()); },
                              [this, target] { return look_(target); });
  }
  /// A lock whose operation is refused is not held. *Returns*: what the operation has returned.
  template <class Undo, class Operation>
  static std::uint64_t undone_if_refused_(Undo undo, Operation operation) {
    try {
      return operation();
    } catch (...) {
      undo();
      throw;
    }
  }
  std::uint64_t look_(process target) {
    const std::uint64_t nothing = 0;
    std::uint64_t seen = 0;
    mpi::detail::check(
        MPI_Fetch_and_op(&nothing, &seen, MPI_UINT64_T, target, 0, MPI_NO_OP, window_.handle()),
        "MPI_Fetch_and_op");
    mpi::detail::check(MPI_Win_flush(target, window_.handle()), "MPI_Win_flush");
    return seen;
  }

  owned_window window_;  // a word of each process
  int processes_;
  bool one_sided_ = true;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
