// SPDX-License-Identifier: BSL-1.0
// How many elements to process between two looks at the other workers.
#pragma once

#include <weft/base/config.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace weft::inline WEFT_ABI::algorithms {

/// As many elements as take some microseconds: so looks cost nothing, and no thief waits long. Begins with
/// one and doubles, since an element may take a nanosecond or a second.
class pace {
 public:
  /// *Returns*: how many to process now, of `left` that there are.
  std::size_t next(std::size_t left) noexcept {
    all_ = left >= size_;
    return std::min(size_, left);
  }
  /// As many as next() said have been processed, since the last call or the beginning.
  void note() noexcept {
    const clock::time_point now = clock::now();
    const auto took = now - last_;
    last_ = now;
    if (took >= shortest) known_ = true;
    if (took < shortest)
      size_ *= all_ ? 2 : 1;  // fewer say nothing
    else if (took > longest && size_ > 1)
      size_ /= 2;
  }
  /// Time that has passed until now does not count.
  void restart() noexcept { last_ = clock::now(); }
  /// Whether the time of an element is known; before, there may be so little to do that help would be late.
  bool known() const noexcept { return known_; }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds shortest{5}, longest{20};

  std::size_t size_ = 1;
  bool known_ = false;
  bool all_ = true;  ///< next() has said size_
  clock::time_point last_ = clock::now();
};

}  // namespace weft::inline WEFT_ABI::algorithms
