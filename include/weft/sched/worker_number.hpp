// SPDX-License-Identifier: BSL-1.0
// Small numbers for the workers of a process, by which others keep something for each of them.
#pragma once

#include <weft/base/atomic.hpp>
#include <weft/base/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::inline WEFT_ABI::sched {

/// The smallest number from 1 on that no other living worker has; it is given back with the object. Whoever
/// gets a number comes after all that was done under it before, so that what is kept under a number passes
/// from worker to worker.
class worker_number {
 public:
  /// Workers of all runtimes of a process that live at the same time.
  static constexpr std::uint32_t most = 1u << 16;

  /// *Throws*: weft::error if there are too many workers.
  worker_number() {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      // Acquire pairs with the release of the destructor.
      std::uint64_t bits = taken_[i].load(base::memory_order_acquire);
      while (bits != ~std::uint64_t{0}) {
        const int free = std::countr_one(bits);
        if (!taken_[i].compare_exchange_weak(bits, bits | std::uint64_t{1} << free,
                                             base::memory_order_acquire, base::memory_order_acquire))
          continue;
        value_ = static_cast<std::uint32_t>(64 * i) + static_cast<std::uint32_t>(free) + 1;
        return;
      }
    }
    throw error("weft: the process has 65536 workers, and there is no room for more");
  }
  worker_number(const worker_number&) = delete;
  worker_number& operator=(const worker_number&) = delete;
  /// *Requires*: the worker's thread has ended, and the caller has waited for it.
  ~worker_number() {
    const std::uint32_t i = value_ - 1;
    taken_[i / 64].fetch_and(~(std::uint64_t{1} << i % 64),
                             base::memory_order_release);  // see the constructor
  }

  std::uint32_t value() const noexcept { return value_; }

 private:
  WEFT_PER_PROCESS inline static constinit std::array<base::atomic<std::uint64_t>, most / 64> taken_{};
  std::uint32_t value_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
