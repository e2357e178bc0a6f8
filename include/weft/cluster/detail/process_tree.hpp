// SPDX-License-Identifier: BSL-1.0
// The tree along which the processes of a cluster learn that a run is over.
#pragma once

#include <weft/base/config.hpp>

#include <algorithm>

namespace weft::inline WEFT_ABI::remote {

/// One process in it. Process 0 is the root, so that it need not talk to all others itself.
struct process_tree {
  static constexpr int fan_out = 8;
  int rank, size;

  /// *Requires*: this is not the root.
  int above() const noexcept { return (rank - 1) / fan_out; }
  int first_below() const noexcept { return std::min(rank * fan_out + 1, size); }
  int end_below() const noexcept { return std::min(rank * fan_out + 1 + fan_out, size); }
  int count_below() const noexcept { return end_below() - first_below(); }
};

}  // namespace weft::inline WEFT_ABI::remote
