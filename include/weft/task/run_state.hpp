// SPDX-License-Identifier: BSL-1.0
// What all strands of one call of run share: whether it was stopped, and how its end is reported.
#pragma once

#include <weft/task/signal.hpp>

#include <exception>
#include <optional>
#include <stop_token>

namespace weft::inline WEFT_ABI::sched {

class worker_share;
struct kept_unit;

/// One run. Lives in the frame of the call of run, which returns after `finished` is set.
///
/// Who may touch it when:
///  1. `stopped` is set by anybody, once; read by owners with acquire.
///  2. `error` is written by the worker that ends the root strand, before it sets `finished`; read by the
///  caller after that.
///  3. `finished` is waited for by the caller and set by the worker that ends the root.
///  4. `share` is set by the caller before its first strand is submitted.
///  5. `waits_end` is set by engine::end_waits, once, and read by bodies that begin to wait.
struct run_state {
  worker_share* share = nullptr;  ///< null: it may have all workers
  base::atomic<bool> stopped{false};
  base::atomic<bool> waits_end{false};  ///< its bodies wait for one another no more
  bool observed = false;                ///< its tasks are traced or recorded; constant once it has begun
  kept_unit* unit = nullptr;            ///< in which its first body runs; constant, too
  std::stop_source source;
  std::optional<std::exception_ptr> error;
  signal finished;
};

}  // namespace weft::inline WEFT_ABI::sched
