// SPDX-License-Identifier: BSL-1.0
// The exception of a failed call of MPI.
#pragma once

#include <weft/base/error.hpp>

#include <mpi.h>

#include <string>

namespace weft::inline WEFT_ABI::mpi {

/// A call of MPI has failed; the text names it, and says what MPI says.
class WEFT_CROSSES_MODULES error : public weft::error {
 public:
  /// `code`: what the call has returned.
  error(const char* call, int code) : weft::error(text_(call, code)), code_(code) {}
  /// The error code of MPI.
  int code() const noexcept { return code_; }

 private:
  static std::string text_(const char* call, int code) {
    char said[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    if (MPI_Error_string(code, said, &length) != MPI_SUCCESS) length = 0;
    return std::string("weft: ") + call + " failed: " + std::string(said, static_cast<std::size_t>(length));
  }
  int code_;
};

namespace detail {

/// *Throws*: mpi::error if a call has failed.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw error(call, code);
}

/// As long as it exists, calls of MPI that name no communicator or window return their errors, instead of
/// ending the job. *Thread safety*: one object at a time.
class errors_returned {
 public:
  errors_returned() {
    for (int i = 0; i < 2; ++i) {
      MPI_Comm_get_errhandler(all_[i], &before_[i]);
      MPI_Comm_set_errhandler(all_[i], MPI_ERRORS_RETURN);
    }
  }
  errors_returned(const errors_returned&) = delete;
  errors_returned& operator=(const errors_returned&) = delete;
  ~errors_returned() {
    for (int i = 0; i < 2; ++i) {
      MPI_Comm_set_errhandler(all_[i], before_[i]);
      MPI_Errhandler_free(&before_[i]);
    }
  }

 private:
  // MPI 3.1 raises such errors on the one, MPI 4.0 on the other.
  MPI_Comm all_[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  MPI_Errhandler before_[2] = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
};

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::mpi
