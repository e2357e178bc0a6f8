// SPDX-License-Identifier: BSL-1.0
// What a runtime has done so far, in numbers.
#pragma once

#include <weft/base/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace weft::inline WEFT_ABI {

/// Totals over all workers of a runtime since it was made; exact while nothing runs.
struct counters {
  std::uint64_t deferred = 0;    ///< tasks that became closures
  std::uint64_t inlined = 0;     ///< tasks run inside fork (fast path only in builds with WEFT_COUNT_INLINED)
  std::uint64_t dropped = 0;     ///< tasks dropped after an exception or a stop
  std::uint64_t steals = 0;      ///< closures taken by thieves
  std::uint64_t capped = 0;      ///< times fork ran tasks because the cap was reached
  std::uint64_t divisions = 0;   ///< times a loop was divided
  std::uint64_t promotions = 0;  ///< frames that became graphs
  std::uint64_t demotions = 0;   ///< of these, how many were left to their owners again
  std::uint64_t folds = 0;       ///< contributions that were made apart and folded into their objects
  std::uint64_t renames = 0;     ///< times a write got a version of its object for its own
  std::uint64_t replayed = 0;    ///< tasks whose dependencies came from a record
  std::uint64_t steal_attempts = 0;    ///< times a thief went into a strand
  std::uint64_t barriers = 0;          ///< times it needed a process-wide barrier for that
  std::uint64_t barriers_refused = 0;  ///< of these, how often the kernel refused membarrier
  std::uint64_t parkings = 0;          ///< strands that waited as data
  std::uint64_t suspensions = 0;       ///< bodies that waited on their own stack
  std::uint64_t sleeps = 0;            ///< times a worker went to sleep
  std::uint64_t wakes = 0;             ///< times work woke one
  std::uint64_t contexts = 0;          ///< stacks made
  std::uint64_t stack_high_water = 0;  ///< most bytes that any of them has used
};

namespace observe {

/// One worker's share. Only that worker writes; anybody may read.
struct worker_counters {
  enum event : unsigned {
    deferred,
    inlined,
    dropped,
    steals,
    capped,
    divisions,
    promotions,
    demotions,
    folds,
    renames,
    replayed,
    steal_attempts,
    barriers,
    barriers_refused,
    parkings,
    suspensions,
    sleeps,
    wakes,
    event_count
  };
  base::atomic<std::uint64_t> of[event_count]{};

  void add(event e, std::uint64_t n = 1) noexcept {
    // Relaxed: a single writer, and readers want a number, not an order.
    of[e].store(of[e].load(base::memory_order_relaxed) + n, base::memory_order_relaxed);
  }
  void add_to(counters& sum) const noexcept {
    const auto get = [this](event e) { return of[e].load(base::memory_order_relaxed); };  // see add
    sum.deferred += get(deferred);
    sum.inlined += get(inlined);
    sum.dropped += get(dropped);
    sum.steals += get(steals);
    sum.capped += get(capped);
    sum.divisions += get(divisions);
    sum.promotions += get(promotions);
    sum.demotions += get(demotions);
    sum.folds += get(folds);
    sum.renames += get(renames);
    sum.replayed += get(replayed);
    sum.steal_attempts += get(steal_attempts);
    sum.barriers += get(barriers);
    sum.barriers_refused += get(barriers_refused);
    sum.parkings += get(parkings);
    sum.suspensions += get(suspensions);
    sum.sleeps += get(sleeps);
    sum.wakes += get(wakes);
  }
};

}  // namespace observe
}  // namespace weft::inline WEFT_ABI
