// SPDX-License-Identifier: BSL-1.0
// Checked builds: whether the rights of one task contradict each other.
#pragma once

#include <weft/base/contract.hpp>
#include <weft/task/access.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace weft::inline WEFT_ABI::flow {

using sched::access_mode;

/// Whether one task can make no sense of two rights on the same data. What it writes it does not see, and
/// what it contributes may be added only after its body, so neither goes with another right.
constexpr bool contradict(access_mode x, access_mode y) noexcept {
  return x == access_mode::reduce || y == access_mode::reduce ||
         (x == access_mode::write) != (y == access_mode::write);
}
inline const char* name_of(access_mode m) noexcept {
  static constexpr const char* names[] = {"read", "write", "update", "reduce", "commute"};
  return names[static_cast<std::size_t>(m)];
}

/// Stops the program if two of the accesses contradict each other.
WEFT_FUNCTION void check_accesses(std::vector<sched::access>& all, const char* task) {
  // A whole object is as good as a part that is not empty. Parts are sorted by their beginning, so one that
  // meets an earlier one meets the one of that mode that reaches farthest.
  for (sched::access& a : all)
    if (!a.sliced) a.end = SIZE_MAX;
  std::erase_if(all, [](const sched::access& a) { return a.begin == a.end; });
  std::sort(all.begin(), all.end(), [](const sched::access& x, const sched::access& y) {
    return x.object != y.object ? std::less<>()(x.object, y.object) : x.begin < y.begin;
  });
  std::size_t reach[5] = {};  // by mode
  for (std::size_t i = 0; i < all.size(); ++i) {
    const sched::access& a = all[i];
    if (i == 0 || all[i - 1].object != a.object) std::fill_n(reach, 5, 0);
    for (std::size_t m = 0; m < 5; ++m)
      if (const auto other = static_cast<access_mode>(m); reach[m] > a.begin && contradict(other, a.mode))
        base::fail(
            "task '%s' is given the rights to %s and to %s the same object, which contradict each other; "
            "give it one right that allows all it does",
            task, name_of(std::min(other, a.mode)), name_of(std::max(other, a.mode)));
    reach[static_cast<std::size_t>(a.mode)] = std::max(reach[static_cast<std::size_t>(a.mode)], a.end);
  }
}

}  // namespace weft::inline WEFT_ABI::flow
