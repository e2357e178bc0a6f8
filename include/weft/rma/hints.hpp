// SPDX-License-Identifier: BSL-1.0
// What hints to MPI say about a window.
#pragma once

#include <weft/mpi/error.hpp>
#include <weft/rma/window_options.hpp>

#include <string>

namespace weft::inline WEFT_ABI::rma {

/// The options that a hint to MPI asks for. `PASSIVE_SYNC_MODE`: `writer-precedence` means
/// mcs_writer_preference, `full-support` means gbh_backoff, which has all forms of locks. Without that hint,
/// `otherwise`.
/// *Throws*: weft::error if the hint has another value; mpi::error.
/// *Source*: Christgau, Schnor 2016, section 7.3.
inline window_options options_from(MPI_Info hints, window_options otherwise = {}) {
  if (hints == MPI_INFO_NULL) return otherwise;
  const mpi::detail::errors_returned while_it_asks;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  mpi::detail::check(MPI_Info_get(hints, "PASSIVE_SYNC_MODE", MPI_MAX_INFO_VAL, value, &is_there),
                     "MPI_Info_get");
  if (is_there == 0) return otherwise;
  const std::string mode = value;
  if (mode == "writer-precedence")
    otherwise.lock = lock_kind::mcs_writer_preference;
  else if (mode == "full-support")
    otherwise.lock = lock_kind::gbh_backoff;
  else
    throw error("weft: PASSIVE_SYNC_MODE is '" + mode + "', neither 'writer-precedence' nor 'full-support'");
  return otherwise;
}

}  // namespace weft::inline WEFT_ABI::rma
