// SPDX-License-Identifier: BSL-1.0
// The kinds of locks on remote memory.
#pragma once

#include <weft/base/config.hpp>

namespace weft::inline WEFT_ABI::rma {

/// How processes lock the memory of another one. docs/explanation/remote-locks.md says which one is for whom.
enum class lock_kind {
  mpi,                    ///< MPI_Win_lock and MPI_Win_unlock: the baseline
  gbh,                    ///< counters, of the window and of each target; who fails tries again
  gbh_backoff,            ///< the same; who fails waits a microsecond, then twice as long, and so on
  mcs_writer_preference,  ///< a queue of writers and a stack of readers for each target; no reader passes a
                          ///< writer
  d_mcs,                  ///< a queue for each target; exclusive locks only
  rma_rw                  ///< counters of readers and queues of writers for each group of processes that are
                          ///< close to each other; readers and writers take turns
};

/// The name of a kind.
constexpr const char* name(lock_kind k) noexcept {
  constexpr const char* names[] = {"mpi", "gbh", "gbh_backoff", "mcs_wp", "d_mcs", "rma_rw"};
  return names[static_cast<int>(k)];
}

/// Whether a kind has shared locks.
constexpr bool has_shared(lock_kind k) noexcept { return k != lock_kind::d_mcs; }
/// Whether a kind can lock all targets at once, without window_options::lock_all.
constexpr bool has_lock_all(lock_kind k) noexcept { return k <= lock_kind::gbh_backoff; }

}  // namespace weft::inline WEFT_ABI::rma
