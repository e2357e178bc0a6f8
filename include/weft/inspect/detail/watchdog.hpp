// SPDX-License-Identifier: BSL-1.0
// The watchdog of a runtime: a thread that describes it when nothing has happened in a run for some time.
#pragma once

#include <weft/base/thread.hpp>
#include <weft/inspect/detail/description.hpp>

#include <cstdio>

namespace weft::inline WEFT_ABI::sched {

/// Looks at an engine several times in the time runtime_options::stall, and prints its description, once,
/// when nothing has changed in so many looks; again only after something has.
/// *Cost*: an owner whose strand was looked at leaves its fast path once.
class stall_watch {
 public:
  /// *Requires*: the engine is in the list of living ones, and lives longer. *Throws*: std::system_error.
  explicit stall_watch(engine& e) : engine_(e), thread_(&stall_watch::watch, this) {}
  stall_watch(const stall_watch&) = delete;
  stall_watch& operator=(const stall_watch&) = delete;
  ~stall_watch() {
    stop_.store(1, base::memory_order_release);  // pairs with watch
    base::futex_wake(stop_, 1);
    thread_.join();
  }

 private:
  /// What a look has found. stuck: strands wait, and no worker has anything to execute.
  enum class finding : std::uint8_t { nothing_to_do, changed, busy, stuck };
  static constexpr unsigned looks = 4;

  void watch() noexcept {
    using namespace std::chrono;
    const nanoseconds pause =
        std::max<nanoseconds>(nanoseconds(engine_.options.stall) / looks, milliseconds(1));
    // Looks are counted, not time: nothing is said of a process that was itself stopped for a while.
    for (unsigned unchanged = 0;;) {
      const auto next = base::clock::now() + pause;
      while (stop_.load(base::memory_order_acquire) == 0 && base::clock::now() < next)
        base::futex_wait_until(stop_, 0, next);
      if (stop_.load(base::memory_order_acquire) != 0) return;
      const finding f = look();
      if (f == finding::nothing_to_do || f == finding::changed) {
        unchanged = 0;
      } else if (unchanged < looks) {
        ++unchanged;
        if (unchanged == looks) report(f);
      }
    }
  }

  finding look() noexcept {
    bool running = false, waiting = false, changed = false;
    std::uint64_t sum = 0;
    for (const auto& w : engine_.workers) sum += done_by(*w);
    engine_.each_strand(~0u, [&](strand& s, std::size_t number) {
      // Relaxed, all of them: whatever is missed now is seen by the next look.
      const strand_status status = s.status.load(base::memory_order_relaxed);
      sum += (number + 1) * static_cast<std::uint64_t>(status) << 32u;
      waiting |= is_waiting(status);
      if (status != strand_status::running) return;
      running = true;
      changed |= (s.attention.fetch_or(watched, base::memory_order_relaxed) & watched) == 0;
    });
    changed |= sum != std::exchange(sum_, sum);
    running |= !engine_.submitted.empty();
    if (!running && !waiting) return finding::nothing_to_do;
    return changed ? finding::changed : running ? finding::busy : finding::stuck;
  }
  /// What only grows when tasks do: not what searching in vain counts.
  static std::uint64_t done_by(const worker& w) noexcept {
    counters c;
    w.counters().add_to(c);
    return c.deferred + c.inlined + c.dropped + c.steals + c.capped + c.promotions + c.demotions + c.folds +
           c.renames + c.replayed + c.parkings + c.suspensions;
  }

  void report(finding f) const noexcept {
    const auto time = static_cast<long long>(engine_.options.stall.count());
    try {
      const std::string text = describe(engine_);
      if (f == finding::stuck)
        std::fprintf(stderr, "weft: for %lld ms nothing was executed, while strands wait\n%s", time,
                     text.c_str());
      else
        std::fprintf(
            stderr,
            "weft: for %lld ms no task was seen to begin or end, which is no fault if those below are "
            "just long\n%s",
            time, text.c_str());
    } catch (const std::bad_alloc&) {
      std::fputs("weft: nothing happens, and there is no memory to describe it\n", stderr);
    }
    if (engine_.trace != nullptr) static_cast<void>(engine_.trace->write());  // its end says what fails
    std::fflush(stderr);
  }

  engine& engine_;
  std::uint64_t sum_ = 0;
  base::atomic<std::uint32_t> stop_{0};
  base::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::sched
