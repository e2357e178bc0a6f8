// SPDX-License-Identifier: BSL-1.0
// What the traced programs of this kernel and of its rivals have in common: their tasks, and how often they
// run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace weft_bench {

constexpr int long_tasks = 2'000, empty_tasks = 100'000;

/// About ten microseconds at 4 GHz.
inline void ten_microseconds() {
  [[maybe_unused]] volatile int steps = 0;
  for (int i = 0; i < 40'000; ++i) steps = i;
}

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
inline double median(std::vector<double> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

/// The rest of a rival's program, `<program> <workers> <0 or 1: traced>`: prints the median times of all
/// tasks of each kind, in seconds. `times` is called with the workers, whether to trace, and two vectors.
template <class Times>
int print_times(int argc, char** argv, Times times) {
  if (argc != 3) return 2;
  std::vector<double> long_ones, empty_ones;
  times(static_cast<unsigned>(std::atoi(argv[1])), argv[2][0] == '1', long_ones, empty_ones);
  std::printf("%.9f %.9f\n", median(long_ones), median(empty_ones));
  return 0;
}

}  // namespace weft_bench
