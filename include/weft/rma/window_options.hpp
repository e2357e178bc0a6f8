// SPDX-License-Identifier: BSL-1.0
// What a window is like: how its memory is reached, and how it is locked.
#pragma once

#include <weft/mpi/error.hpp>
#include <weft/rma/lock_kind.hpp>

#include <cstddef>
#include <string>

namespace weft::inline WEFT_ABI::rma {

/// How processes reach the memory of each other.
enum class backend {
  automatic,      ///< shared if all processes run on one node and MPI can share memory, else between_nodes
  shared,         ///< memory that all processes have mapped, and the atomic instructions of the processor
  between_nodes,  ///< mpi if it has such operations, and a probe finds them atomic and that a target may
                  ///< stay outside MPI; else messages
  mpi,            ///< the one-sided operations of MPI
  messages        ///< messages to a thread of the target, which executes what they say
};

/// The name of a backend.
constexpr const char* name(backend b) noexcept {
  constexpr const char* names[] = {"automatic", "shared", "between_nodes", "mpi", "messages"};
  return names[static_cast<int>(b)];
}

/// What a window is like; the same in all processes, which its constructor checks.
struct window_options {
  lock_kind lock = lock_kind::mcs_writer_preference;  ///< of its locks
  rma::backend backend = backend::automatic;          ///< how its memory is reached
  /// Locks of each process, at least 1: each protects what the program wants it to.
  unsigned locks = 1;
  /// Whether locks of the kinds mcs_writer_preference and rma_rw can lock all targets at once: that costs
  /// each exclusive lock two operations more at process 0.
  bool lock_all = false;
  /// Processes of a group, for locks of the kind rma_rw: numbers from k * group on are close to each other.
  /// 0: as many as a node has of them.
  int group = 0;
  /// Writers of a group that follow each other at most before readers and other groups have their turn, for
  /// locks of the kind rma_rw; at least 1.
  int most_writers_in_a_row = 16;
};

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
