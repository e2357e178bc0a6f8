// SPDX-License-Identifier: BSL-1.0
// What all strands of one call of run share: whether it was stopped, and how its end is reported.
#pragma once

#include <weft/base/event_count.hpp>

#include <exception>
#include <optional>
#include <stop_token>

namespace weft::sched {

struct strand;
class engine;

/// One run. Lives in the frame of the call of run, which returns after `finish`.
///
/// Who may touch it when:
///  1. `stopped` is set by anybody, once; read by owners with acquire.
///  2. `error` is written by the worker that ends the root strand, before `finished`; read by the caller
///  after it.
///  3. `caller` and `callers` are set before the run starts: the strand that called run, or null for other
///  threads.
///  4. `finished` goes from going to awaited by the calling strand, and to ended by the worker that ends the
///  root.
struct run_state {
  /// Values of `finished`; awaited: the strand `caller` waits.
  static constexpr std::uint32_t going = 0, ended = 1, awaited = 2;

  base::atomic<bool> stopped{false};
  base::atomic<std::uint32_t> finished{going};
  std::stop_source source;
  std::optional<std::exception_ptr> error;
  strand* caller = nullptr;
  engine* callers = nullptr;  ///< whose worker executes the caller; null if it is no worker

  /// Blocks the calling kernel thread until the run has ended.
  void wait() noexcept {
    while (finished.load(base::memory_order_acquire) != ended)
      base::futex_wait(finished, going);  // pairs with finish
  }
  /// Reports the end; the state may be gone when this returns. *Returns*: the strand to be continued, if one
  /// waits.
  strand* finish() noexcept {
    strand* const waiter = caller;
    // Release publishes error and results to wait(); acquire takes over a waiting strand.
    if (finished.exchange(ended, base::memory_order_acq_rel) == awaited) return waiter;
    base::futex_wake(finished, 1);
    return nullptr;
  }
};

}  // namespace weft::sched
