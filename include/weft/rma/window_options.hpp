// SPDX-License-Identifier: BSL-1.0
// What a window is like: how its memory is reached, and how it is locked.
#pragma once

#include <weft/rma/lock_kind.hpp>

namespace weft::inline WEFT_ABI::rma {

/// How processes reach the memory of each other.
enum class backend {
  automatic,      ///< shared if all processes run on one node and MPI can share memory, else between_nodes
  shared,         ///< memory that all processes have mapped, and the atomic instructions of the processor
  between_nodes,  ///< mpi if it has such operations, and a probe finds them atomic and that a target may
                  ///< stay outside MPI; else messages
  mpi,            ///< the one-sided operations of MPI
  messages,       ///< messages to a thread of the target, which executes what they say
  threads         ///< the memory of this process: its threads stand for processes (thread_group)
};

/// The name of a backend.
constexpr const char* name(backend b) noexcept {
  constexpr const char* names[] = {"automatic", "shared", "between_nodes", "mpi", "messages", "threads"};
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

}  // namespace weft::inline WEFT_ABI::rma
