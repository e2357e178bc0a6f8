// SPDX-License-Identifier: BSL-1.0
// A value that counts its living instances, copies and moves, and throws from the k-th of them on demand.
#pragma once

#include <atomic>
#include <stdexcept>

namespace weft_test {

/// What `tracked` throws; its own type, so that a test cannot mistake another exception for it.
struct planted_failure : std::runtime_error {
  planted_failure() : std::runtime_error("planted failure") {}
};

/// A copyable and movable value for tests of lifetimes and of failing copies. The counters are relaxed: tests
/// read them after the run whose end orders them.
class tracked {
 public:
  static inline std::atomic<long> alive{0};
  static inline std::atomic<long> copies{0};
  static inline std::atomic<long> moves{0};
  /// The constructions (of any kind) left before one throws; negative: none throws.
  static inline std::atomic<long> until_failure{-1};

  static void reset() {
    alive.store(0, std::memory_order_relaxed);
    copies.store(0, std::memory_order_relaxed);
    moves.store(0, std::memory_order_relaxed);
    until_failure.store(-1, std::memory_order_relaxed);
  }

  tracked(long v = 0) : value(v) { born(); }  // NOLINT(google-explicit-constructor): stands in for a number
  tracked(const tracked& other) : value(other.value) {
    born();
    copies.fetch_add(1, std::memory_order_relaxed);
  }
  tracked(tracked&& other) : value(other.value) {  // NOLINT(*-noexcept-move*): it throws when asked to
    born();
    moves.fetch_add(1, std::memory_order_relaxed);
  }
  tracked& operator=(const tracked&) = default;
  tracked& operator=(tracked&&) = default;
  ~tracked() { alive.fetch_sub(1, std::memory_order_relaxed); }

  long value;

 private:
  static void born() {
    if (until_failure.load(std::memory_order_relaxed) >= 0 &&
        until_failure.fetch_sub(1, std::memory_order_relaxed) == 0) {
      throw planted_failure();
    }
    alive.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace weft_test
