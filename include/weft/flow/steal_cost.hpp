// SPDX-License-Identifier: BSL-1.0
// steal_cost: how much a steal delays a task, measured on this machine.
#pragma once

#include <weft/flow/fork.hpp>
#include <weft/flow/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// How much later two equal bodies have ended than one of them alone, if another worker steals one of the two
/// and the task around them waits for it: the median of so many trials, 50 microseconds each. To be given to
/// work_and_span (work_and_span_options::steal), whose burdened span adds as much for each task on a path.
/// *Requires*: called outside tasks, on a machine that does nothing else. With a single processor it is the
/// length of the bodies, since one waits for the other.
/// *Throws*: what the constructor of a runtime throws; std::bad_alloc.
/// *Example*: `weft::observe::work_and_span ws({.steal = weft::observe::steal_cost()});`
inline std::chrono::nanoseconds steal_cost(int trials = 200) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds length(50);
  const auto work = [length] {
    for (const auto end = clock::now() + length; clock::now() < end;) {
    }
  };
  std::vector<clock::duration> longer;
  runtime rt({.workers = 2, .inlining = false});
  rt.run([&] {
    for (int i = 0; i < std::max(trials, 1); ++i) {
      const auto start = clock::now();
      fork(work);
      work();
      sync();
      longer.push_back(std::max(clock::now() - start - length, clock::duration()));
    }
  });
  const auto middle = longer.begin() + static_cast<std::ptrdiff_t>(longer.size() / 2);
  std::nth_element(longer.begin(), middle, longer.end());
  return *middle;
}

}  // namespace weft::inline WEFT_ABI::observe
