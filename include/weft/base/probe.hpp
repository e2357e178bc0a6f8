// SPDX-License-Identifier: BSL-1.0
// Probes by which tracers (perf, bpftrace, GDB) follow a program that was not built for them.
#pragma once

#include <weft/base/config.hpp>

#include <cstdint>

/// Static user-level probes (USDT), of the provider `weft`. Each is a nop at the place of the call; its
/// arguments are what the function gets, in the same order, as 64-bit numbers. What is passed should be at
/// hand: it is computed whether or not somebody traces. None is on the path of a task that runs inside fork.
/// *Source*: "UserSpaceProbeImplementation" of SystemTap, the format of notes in ELF files.
namespace weft::inline WEFT_ABI::base::probe {

/// A call of run has begun.
WEFT_ALWAYS_INLINE void run_begin([[maybe_unused]] const void* engine,
                                  [[maybe_unused]] const void* run) noexcept {
  WEFT_PROBE("run_begin", "8@%0 8@%1", "nr"(engine), "nr"(run));
}
/// The run has ended, with all its tasks. `failed`: 1 if it ends by an exception.
WEFT_ALWAYS_INLINE void run_end([[maybe_unused]] const void* engine, [[maybe_unused]] const void* run,
                                [[maybe_unused]] std::uint64_t failed) noexcept {
  WEFT_PROBE("run_end", "8@%0 8@%1 8@%2", "nr"(engine), "nr"(run), "nr"(failed));
}
/// `fork` has put a task aside for later, or for a thief. `task`: its name, or null. `closure`: by which it
/// is known until it runs.
WEFT_ALWAYS_INLINE void fork([[maybe_unused]] const char* task, [[maybe_unused]] const void* closure,
                             [[maybe_unused]] const void* strand) noexcept {
  WEFT_PROBE("fork", "8@%0 8@%1 8@%2", "nr"(task), "nr"(closure), "nr"(strand));
}
/// A worker has taken a task from another strand. `strand`: of the thief, which is about to run the task.
WEFT_ALWAYS_INLINE void steal([[maybe_unused]] const char* task, [[maybe_unused]] std::uint64_t worker,
                              [[maybe_unused]] const void* strand) noexcept {
  WEFT_PROBE("steal", "8@%0 8@%1 8@%2", "nr"(task), "nr"(worker), "nr"(strand));
}
/// A thief has made a graph for a large frame of the strand.
WEFT_ALWAYS_INLINE void promotion([[maybe_unused]] const void* strand,
                                  [[maybe_unused]] const void* frame) noexcept {
  WEFT_PROBE("promotion", "8@%0 8@%1", "nr"(strand), "nr"(frame));
}
/// The owner goes on without the graph.
WEFT_ALWAYS_INLINE void demotion([[maybe_unused]] const void* strand,
                                 [[maybe_unused]] const void* frame) noexcept {
  WEFT_PROBE("demotion", "8@%0 8@%1", "nr"(strand), "nr"(frame));
}
/// A worker that has found nothing goes to sleep.
WEFT_ALWAYS_INLINE void sleep([[maybe_unused]] std::uint64_t worker,
                              [[maybe_unused]] const void* engine) noexcept {
  WEFT_PROBE("sleep", "8@%0 8@%1", "nr"(worker), "nr"(engine));
}
/// It is awake again.
WEFT_ALWAYS_INLINE void wake([[maybe_unused]] std::uint64_t worker,
                             [[maybe_unused]] const void* engine) noexcept {
  WEFT_PROBE("wake", "8@%0 8@%1", "nr"(worker), "nr"(engine));
}
/// A strand is put aside. `reason`: in words, what it waits for.
WEFT_ALWAYS_INLINE void wait_begin([[maybe_unused]] const char* reason, [[maybe_unused]] std::uint64_t worker,
                                   [[maybe_unused]] const void* strand) noexcept {
  WEFT_PROBE("wait_begin", "8@%0 8@%1 8@%2", "nr"(reason), "nr"(worker), "nr"(strand));
}
/// It goes on, maybe with another worker.
WEFT_ALWAYS_INLINE void wait_end([[maybe_unused]] std::uint64_t worker,
                                 [[maybe_unused]] const void* strand) noexcept {
  WEFT_PROBE("wait_end", "8@%0 8@%1", "nr"(worker), "nr"(strand));
}
/// An exception has left a task, and is kept at its place in reference order.
WEFT_ALWAYS_INLINE void exception([[maybe_unused]] const char* task,
                                  [[maybe_unused]] const void* strand) noexcept {
  WEFT_PROBE("exception", "8@%0 8@%1", "nr"(task), "nr"(strand));
}

}  // namespace weft::inline WEFT_ABI::base::probe
