// SPDX-License-Identifier: BSL-1.0
// Times two ways to do the same in turns, and prints medians.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace weft_bench {

inline double median_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <class F>
double seconds_of(F f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Prints the times of both, and the median of the ratios first / second of each turn.
inline void print_turns(const char* what, const char* first, const std::vector<double>& a, const char* second,
                        const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%s: %s %.4f s, %s %.4f s; %s / %s %.3f (%.3f to %.3f), %zu turns\n", what, first, median_of(a),
              second, median_of(b), first, second, median_of(ratios), *least, *most, ratios.size());
}

}  // namespace weft_bench
