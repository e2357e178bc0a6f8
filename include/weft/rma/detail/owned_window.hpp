// SPDX-License-Identifier: BSL-1.0
// A window of MPI, freed when its owner ends.
#pragma once

#include <weft/mpi/communicator.hpp>

#include <cstddef>

namespace weft::inline WEFT_ABI::rma::detail {

/// What a collective call has returned: in all processes an error, if in one of them. Collective.
inline int agreed(const mpi::communicator& group, int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  const int worst = group.max(kind);
  return code != MPI_SUCCESS ? code : worst;
}

/// A window that MPI has allocated, or none. Its errors are returned. reset() and the destructor are
/// collective if there is one.
class owned_window {
 public:
  owned_window() = default;
  owned_window(const owned_window&) = delete;
  owned_window& operator=(const owned_window&) = delete;
  ~owned_window() { reset(); }

  /// Allocates memory in each process: in all of them, or in none. Collective. *Returns*: the error of MPI.
  int allocate(const mpi::communicator& group, std::size_t bytes, bool shared) {
    const auto size = static_cast<MPI_Aint>(bytes);
    const int code = agreed(
        group, shared ? MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, group.handle(), &base_, &handle_)
                      : MPI_Win_allocate(size, 1, MPI_INFO_NULL, group.handle(), &base_, &handle_));
    if (code == MPI_SUCCESS)
      MPI_Win_set_errhandler(handle_, MPI_ERRORS_RETURN);
    else
      handle_ = MPI_WIN_NULL;  // to free it would wait for processes that have none
    return code;
  }
  void reset() noexcept {
    if (handle_ != MPI_WIN_NULL) MPI_Win_free(&handle_);
  }
  /// Never frees it: that would wait for the others.
  void leave() noexcept { handle_ = MPI_WIN_NULL; }
  MPI_Win handle() const noexcept { return handle_; }
  /// The memory of this process.
  void* base() const noexcept { return base_; }

 private:
  MPI_Win handle_ = MPI_WIN_NULL;
  void* base_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
