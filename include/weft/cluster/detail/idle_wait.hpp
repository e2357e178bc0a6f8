// SPDX-License-Identifier: BSL-1.0
// How the thread that sends and receives waits for the next message, while others of its process compute.
#pragma once

#include <weft/base/platform.hpp>
#include <weft/cluster/transport.hpp>

#include <algorithm>
#include <chrono>

namespace weft::inline WEFT_ABI::remote {

/// The longer nothing has come, the longer it waits. *Thread safety*: the thread that serves.
class idle_wait {
 public:
  using nanoseconds = std::chrono::nanoseconds;
  using microseconds = std::chrono::microseconds;

  /// `workers`: of this process. `longest`: a wait where it has something to do.
  idle_wait(transport& by, unsigned workers, microseconds longest) noexcept
      : by_(by), longest_(longest), place_(place_of_(by.processors(), workers)) {}

  /// Waits a moment. `quiet`: the time since something came. `eager`: there is nothing else to do, or
  /// somebody waits for what is to come.
  void operator()(nanoseconds quiet, bool eager) const {
    eager |= by_.moves();
    const nanoseconds longest = eager ? std::min(longest_, most_eager) : longest_;
    switch (place_) {
      case place::spare:
        if (quiet < microseconds(10'000)) return base::yield();
        break;
      case place::shared:
        if (quiet < (eager ? microseconds(200) : microseconds(20))) return base::yield();
        break;
      case place::none:
        return by_.wait(std::clamp<nanoseconds>(quiet / 4, microseconds(20), longest));
    }
    by_.wait(std::min(quiet / 4, longest));
  }

 private:
  /// Where this thread can run: on a processor that no worker needs; on some that it shares with other
  /// processes; only where a worker computes.
  enum class place { spare, shared, none };
  static constexpr microseconds most_eager{100};

  /// A thread that yields a processor to one that computes is scheduled behind it again and again, up to a
  /// tick of the kernel (1 to 10 ms) each time it has yielded; one that sleeps is not.
  static place place_of_(const processor_room& p, unsigned workers) noexcept {
    if (p.allowed == 0) return place::shared;  // not known
    if (p.allowed <= workers) return place::none;
    return p.share >= workers + 1 ? place::spare : place::shared;
  }

  transport& by_;
  const microseconds longest_;
  const place place_;
};

}  // namespace weft::inline WEFT_ABI::remote
