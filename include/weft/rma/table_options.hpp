// SPDX-License-Identifier: BSL-1.0
// What a hash table is like, and what a process has done with it.
#pragma once

#include <weft/rma/lock_kind.hpp>
#include <weft/rma/window_options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::inline WEFT_ABI::rma {

/// What a hash table is like; the same in all processes.
struct table_options {
  std::size_t buckets_per_process = std::size_t{1} << 16;  ///< at least 1
  /// A cache: a new key replaces another one where all its places are taken. Otherwise that is an error.
  bool evict = false;
  unsigned places = 8;                        ///< of a key in a cache
  rma::backend backend = backend::automatic;  ///< how buckets are reached
  /// Locks for readers and writers, of any kind; without, searches take no lock and a change that of its
  /// bucket. lock_kind::mpi with one range and backend::mpi is the table of Christgau and Schnor 2016,
  /// section 2.2: each operation is one MPI_Win_lock of the process, shared or exclusive, then a get, and for
  /// a change a put, and MPI_Win_unlock. It differs in three ways: it gets a bucket more for each one that
  /// another key has (the paper has no second place for a key), it also gets before a put, and the locks are
  /// those of a window of their own, so that a get or put ends with a flush of its own.
  std::optional<lock_kind> lock = std::nullopt;
  unsigned ranges = 1;      ///< locks of each process; a key stays in the range of buckets where it belongs
  unsigned buffered = 256;  ///< inserts for a process that insert_buffered() collects
};

/// What a process has done with a table.
struct table_statistics {
  std::uint64_t inserted = 0;  ///< keys that were new
  std::uint64_t replaced = 0;  ///< values of keys that were there
  std::uint64_t found = 0;     ///< searches with a result
  std::uint64_t missed = 0;    ///< searches without one
  std::uint64_t evicted = 0;   ///< keys that others have replaced
  std::uint64_t probed = 0;    ///< buckets that were looked at
  std::uint64_t retried = 0;   ///< reads that met a write
};

}  // namespace weft::inline WEFT_ABI::rma
